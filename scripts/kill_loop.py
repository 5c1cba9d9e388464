#!/usr/bin/env python3
"""Kill evaluations again and again, at random moments from start-up to the end of logging, and check what comes out.

`evaltrack run --resume auto` is started, killed with SIGKILL, and started again; after some kills it may finish, and
then MLflow must hold what it holds of an evaluation that nobody killed: the same metrics to the last bit, one run,
FINISHED, with one row, one table line and one trace a question. No more than the questions in flight at each kill may
be asked or paid for twice. In every other chain there is no verdict cache, so that the journal alone protects what was
paid. The judge is a scripted OpenAI server in a process of its own, which counts its calls.

With `--store http` the runs are on a real MLflow server behind a proxy that answers 503, breaks connections off before
or after the server has done what was asked, cuts, delays and doubles. With `--full-disk` the state folder of each
evaluation is a disk that fills up; it is given more room when evaltrack asks for that.

    python scripts/kill_loop.py --kills 100 --questions 200 --seed 0
    python scripts/kill_loop.py --store http --full-disk

Exits 1 if anything was lost, doubled or paid for too often; one line a chain, and a summary.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

from scripts.killing.loop import Loop, Plan, summary  # noqa: E402 - found through the path above
from scripts.soaking.stores import Place, behind_proxy, mlflow_server  # noqa: E402
from tests.openai_server import server_process  # noqa: E402

LATENCY = 0.05


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100, help="how many processes are killed; default: 100")
    parser.add_argument("--questions", type=int, default=200, help="in each evaluation; default: 200")
    parser.add_argument("--seed", type=int, default=0, help="of the moments of the kills; default: 0")
    parser.add_argument("--store", choices=("sqlite", "http"), default="sqlite", help="default: sqlite")
    parser.add_argument("--server", type=int, metavar="PORT", help="with http: a server of this machine, not its own")
    parser.add_argument("--mlflow-faults", type=float, default=0.03, help="share of requests, with http; default: 0.03")
    parser.add_argument("--full-disk", action="store_true", help="state folders fill up (as root: a disk is mounted)")
    parser.add_argument("--forked", action="store_true", help="start without imports: quicker, and few kills come then")
    parser.add_argument("--keep", action="store_true", help="keep the folders of chains with a problem")
    return parser.parse_args()


@contextmanager
def _place(chosen: argparse.Namespace, folder: Path) -> Iterator[Place | None]:
    """The server that all chains share, where one was chosen."""
    if chosen.server:
        with behind_proxy(chosen.server, chosen.mlflow_faults, chosen.seed) as place:
            yield place
        return
    if chosen.store == "sqlite":
        yield None
        return
    (folder / "server").mkdir()
    with mlflow_server(folder / "server") as port, behind_proxy(port, chosen.mlflow_faults, chosen.seed) as place:
        yield place


def main() -> int:
    """Run the loop; the exit code."""
    chosen = _chosen()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started and mounted is taken down
    folder, start = Path(tempfile.mkdtemp(prefix="kill-loop-")), time.monotonic()
    try:
        with server_process("--latency", str(LATENCY)) as base_url, _place(chosen, folder) as place:
            own = (chosen.kills, chosen.questions, chosen.seed)
            plan = Plan(*own, forked=chosen.forked, full_disk=chosen.full_disk, place=place)
            chains = Loop(folder, plan).run(base_url)
            if place is not None:
                print(", ".join(f"{count} {name}" for name, count in place.faults().items()))
    finally:
        if chosen.keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder)
    print(summary(chains, time.monotonic() - start))
    return int(any(chain.problems for chain in chains))


if __name__ == "__main__":
    sys.exit(main())
