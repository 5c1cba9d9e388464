"""The settings that say where questions are asked."""

from __future__ import annotations

from typing import Literal

from evaltrack.records.config import Config, OptionalText, setting

EngineName = Literal["local", "ray", "spark"]
"""Where questions are asked: in this process, or by the workers of a cluster."""

MAX_ENGINE_WORKERS = 1024


class EngineConfig(Config):
    """The settings of an engine; those of an evaluation are beside them."""

    engine: EngineName = setting(
        "local", "Where questions are asked: local, or by the workers of ray or spark.", logged="chosen", shapes=False
    )
    engine_address: str = setting(
        "",
        "Address of the cluster, as Ray or Spark takes it.  [default: theirs, else workers on this machine]",
        logged="never",
        shapes=False,
    )
    engine_folder: OptionalText = setting(
        "",
        "Folder that this machine and all workers share, or s3://BUCKET/PREFIX.  [default: beside the journals]",
        logged="never",
        shapes=False,
    )
    engine_workers: int = setting(
        0,
        "Workers at once, which share `concurrency`; 0 takes as many as the cluster has CPUs.",
        logged="chosen",
        shapes=False,
        strict=True,
        ge=0,
        le=MAX_ENGINE_WORKERS,
    )
