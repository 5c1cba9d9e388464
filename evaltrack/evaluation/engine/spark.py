"""Parts as partitions of a Spark job."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Order, PartEnd, Receipt
from evaltrack.evaluation.engine.part import run_part
from evaltrack.evaluation.engine.settings import MAX_ENGINE_WORKERS
from evaltrack.evaluation.loop import Watch
from evaltrack.privacy.addresses import shown_text

if TYPE_CHECKING:
    import pandas as pd

MOST_DEATHS = 10
"""How often a job may fail in which no part was finished."""
WAIT_SECONDS = 0.25
END_SECONDS = 10.0
"""How long a job may take to be broken off."""
_PYTHON_ERROR = re.compile(r"^[\w.]+(?:Error|Exception): .+", re.MULTILINE)
CONNECT = "sc://"
"""How addresses of Spark Connect begin."""


@contextmanager
def connected_spark(address: str) -> Iterator[SparkEngine]:
    """Spark at an address, else where its own settings lead, else started on this machine for the time being.

    A session that this process has already is used, and stays open.

    Raises:
        UsageError: it cannot be reached.
    """
    from pyspark.sql import SparkSession

    if (session := SparkSession.getActiveSession()) is not None:
        yield SparkEngine(session)
        return
    try:
        builder: Any = SparkSession.builder.appName("evaltrack").config("spark.ui.showConsoleProgress", "false")
        if address:
            builder = builder.remote(address) if address.startswith(CONNECT) else builder.master(address)
        session = builder.getOrCreate()
        _use_this_python(session)
    except Exception as error:  # noqa: BLE001 - of many kinds, also Java's
        where = f"`engine_address={address}`" if address else "`engine=spark`"
        what = shown_text(f"{type(error).__name__}: {error}".splitlines()[0])
        cure = "write it as Spark takes it, such as local[4], spark://HOST:7077 or sc://HOST; Spark needs Java"
        raise UsageError(f"{where}: Spark cannot be reached ({what}); {cure}") from None
    try:
        yield SparkEngine(session)
    finally:
        session.stop()


class SparkEngine:
    """The cluster of a session."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        self.num_cpus = max(1, _parallelism(session))

    def run(
        self, orders: list[Order], environment: dict[str, str], workers: int, watch: Watch
    ) -> Iterator[PartEnd | None]:
        """Run jobs until all parts have ended; as `Engine.run`. That a part is done is seen in the shared folder."""
        left, deaths = {order.part.number: order for order in orders}, 0
        while left and not watch.stop():
            job = _Job(self._session, list(left.values()), environment, _stripes(len(left), workers, self.num_cpus))
            num_left = len(left)
            try:
                while not job.ended:
                    yield from _done(left)
                    yield None
                yield from _done(left)
            finally:
                job.cancel()
            for end in job.ends:
                if end.receipt is None:
                    yield end
                    left.pop(end.part, None)
            if left and job.error is not None:
                deaths = deaths + 1 if len(left) == num_left else 1
                _check(deaths, job.error)
                watch.warn(f"a job of Spark failed ({_words(job.error)}); what is left goes on from its journals")


def _parallelism(session: Any) -> int:
    """How many tasks the cluster takes at once."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import spark_partition_id

    if isinstance(session, SparkSession):
        return int(session.sparkContext.defaultParallelism)
    # A session of Spark Connect has no context, but cuts a range into so many partitions.
    return int(session.range(MAX_ENGINE_WORKERS).select(spark_partition_id()).distinct().count())


def _use_this_python(session: Any) -> None:
    """Have workers on this machine run the Python of this process, where Spark was given none: it takes any python3."""
    from pyspark.sql import SparkSession

    if not isinstance(session, SparkSession) or "PYSPARK_PYTHON" in os.environ:
        return
    context: Any = session.sparkContext
    if context.master.startswith("local") and not session.conf.get("spark.pyspark.python", None):
        context.pythonExec = sys.executable


class _Job:
    """One job, which is waited for in a thread."""

    def __init__(self, session: Any, orders: list[Order], environment: dict[str, str], num_stripes: int) -> None:
        texts = [order.model_dump_json() for order in orders]
        stripes = [texts[number::num_stripes] for number in range(num_stripes)]
        self.ends: list[PartEnd] = []
        self.error: Exception | None = None
        self._session, self._tag = session, f"evaltrack-{id(self)}"
        frame = session.range(0, num_stripes, 1, num_stripes)
        self._frame = frame.mapInPandas(_work_on(stripes, environment), "end string")
        self._thread = threading.Thread(target=self._run, name="evaltrack-spark", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._session.addTag(self._tag)
            self.ends = [PartEnd.model_validate_json(row.end) for row in self._frame.collect()]
        except Exception as error:  # noqa: BLE001 - what it means is decided by the driver's thread
            self.error = error

    @property
    def ended(self) -> bool:
        """Whether it has, after waiting for a moment."""
        self._thread.join(WAIT_SECONDS)
        return not self._thread.is_alive()

    def cancel(self) -> None:
        """Break it off where it goes on."""
        if self._thread.is_alive():
            self._session.interruptTag(self._tag)
            self._thread.join(END_SECONDS)


def _work_on(stripes: list[list[str]], environment: dict[str, str]) -> Any:
    """What a partition does: its id says which orders are its own."""

    def work(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        import pandas as pd

        for batch in batches:
            for stripe in batch["id"]:
                for order in stripes[int(stripe)]:
                    yield pd.DataFrame({"end": [run_part(order, environment)]})

    return work


def _stripes(num_parts: int, workers: int, num_cpus: int) -> int:
    """Into how many partitions parts go: one each where Spark may use all it has, else one for each worker."""
    return num_parts if workers >= num_cpus else min(workers, num_parts)


def _done(left: dict[int, Order]) -> Iterator[PartEnd]:
    """The parts that have a receipt by now; they are left no longer."""
    folder = next((order.folder for order in left.values()), "")
    receipts = list[Receipt]()
    with suppress(InconclusiveError):  # out of reach now, there is another look soon
        receipts.extend(WorkFolder(folder).receipts(list(left)) if left else ())
    for receipt in receipts:
        del left[receipt.part]
        yield PartEnd(part=receipt.part, receipt=receipt)


def _check(deaths: int, error: Exception) -> None:
    """Raise where jobs fail again and again."""
    if deaths >= MOST_DEATHS:
        cure = "see why in Spark's own logs; its workers need the same evaltrack and the same Python"
        raise InconclusiveError(f"the jobs of Spark failed {MOST_DEATHS} times ({_words(error)}); {cure}") from None
    time.sleep(WAIT_SECONDS)


def _words(error: Exception) -> str:
    """The error of Python that a failed job holds, else the beginning of what Spark says."""
    text = str(error)
    last = _PYTHON_ERROR.findall(text)[-1:] or [text]
    return shown_text(" ".join(f"{type(error).__name__}: {last[0]}".split())[:200])
