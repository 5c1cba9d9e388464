#!/usr/bin/env python3
"""Evaluate very many questions with a target that fails in every way, on an MLflow store that fails now and then.

The target is a function of this process. At the given rate it raises, hangs past its deadline, swallows the deadline
and answers late, returns rubbish, and returns answers and sources that are far too long; some good answers are slow.

The store is a real one in a folder of its own:

    http           `mlflow server` behind a proxy that answers 503, breaks connections off before or after the server
                   has done what was asked, cuts, delays and doubles; at most two faults come in a row
    http-no-proxy  the same, with artifacts that the server does not serve
    s3             artifacts in moto's S3 behind such a proxy, runs in SQLite (needs: pip install boto3 moto[server])
    postgresql     a database whose connections are ended now and then (needs: PostgreSQL; pip install psycopg[binary])
    mysql          likewise, MySQL's protocol on MariaDB (needs: MariaDB; pip install pymysql)
    sqlite, file   MLflow's database file and its folder of files, without faults

Which question meets which fault follows from the seed, so that the rows in MLflow can be held against it one by one:
every question once, with the failure it must have or with none.

    python scripts/soak.py --questions 100000 --faults 0.05 --seed 0
    python scripts/soak.py --store postgresql --questions 10000

Exits 1 if a row, metric, span or assessment is missing, doubled or another than it must be, if a run is left RUNNING,
or if the peak of memory grows by more than 100 MB after the first tenth of the questions.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

REPO = Path(__file__).parent.parent
sys.path.insert(0, str(REPO))
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("MLFLOW_LOGGING_LEVEL", "WARNING")

from scripts.soaking.evaluation import Soak, Watch  # noqa: E402 - found through the path above
from scripts.soaking.faults import Faults  # noqa: E402
from scripts.soaking.stores import STORES, behind_proxy  # noqa: E402


def report(soak: Soak, watch: Watch, met: Counter[str], faults: dict[str, int], seconds: float) -> None:
    """Print the figures."""
    rows = ", ".join(f"{count:,} {kind}" for kind, count in sorted(watch.kinds.items()))
    print(f"questions           {soak.questions:>9,}")
    asked = ", ".join(f"{count:,} {name}" for name, count in sorted(met.items()))
    print(f"target's faults     {met.total():>9,}  ({asked})")
    if "requests" in faults:
        print(f"requests            {faults['requests']:>9,}")
    by_kind = {name: count for name, count in faults.items() if name != "requests" and count}
    named = ", ".join(f"{count:,} {name}" for name, count in by_kind.items())
    print(f"store's faults      {sum(by_kind.values()):>9,}  ({named})")
    print(f"resumed             {len(soak.refusals):>9,}  ({'; '.join(text[:90] for text in soak.refusals[:3])})")
    print(f"error rows          {watch.kinds.total():>9,}  ({rows})")
    print(f"rows lost           {soak.lost:>9,}")
    print("peak memory         " + ", ".join(f"{place}: {mb:.0f} MB" for place, mb in watch.peaks.items()))
    print(f"time                {seconds:>9.0f} s")


def _chosen() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=100_000, help="default: 100000")
    parser.add_argument("--faults", type=float, default=0.05, help="share of questions with a fault; default: 0.05")
    parser.add_argument(
        "--mlflow-faults", type=float, default=0.03, help="share of the store's requests; default: 0.03"
    )
    parser.add_argument("--seed", type=int, default=0, help="of all faults; default: 0")
    parser.add_argument("--store", choices=list(STORES), default="http", help="default: http")
    parser.add_argument(
        "--server", type=int, metavar="PORT", help="an MLflow server of this machine in place of a store"
    )
    chosen = parser.parse_args()
    if chosen.questions < 10 or not 0 <= chosen.faults <= 1 or not 0 <= chosen.mlflow_faults <= 0.5:
        parser.error("at least 10 questions; shares are from 0 to 1, of the store's requests to 0.5")
    return chosen


def main() -> int:
    """Run the soak; the exit code."""
    chosen = _chosen()
    folder = Path(tempfile.mkdtemp(prefix="evaltrack-soak-"))
    os.environ["EVALTRACK_STATE_DIR"] = str(folder / "state")
    soak = Soak(chosen.questions, Faults(chosen.faults, chosen.seed), folder)
    rate, seed = chosen.mlflow_faults, chosen.seed
    opened = behind_proxy(chosen.server, rate, seed) if chosen.server else STORES[chosen.store](folder, rate, seed)
    try:
        with opened as place:
            start = time.monotonic()
            watch, met = soak.run(place)
            report(soak, watch, met, place.faults(), time.monotonic() - start)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for problem in soak.problems:
        print(f"PROBLEM: {problem}")
    return int(bool(soak.problems))


if __name__ == "__main__":
    sys.exit(main())
