"""The time of day, as MLflow takes it."""

from __future__ import annotations

import time


def seconds_now() -> float:
    """Seconds since 1970, never negative: MLflow refuses earlier times, and a clock may be wrong."""
    return max(0.0, time.time())


def milliseconds_now() -> int:
    """Milliseconds since 1970, never negative."""
    return int(seconds_now() * 1000)
