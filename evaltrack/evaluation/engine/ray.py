"""Parts as tasks of Ray."""

from __future__ import annotations

import logging
import os
import re
import socket
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.engine.orders import Order, PartEnd
from evaltrack.evaluation.engine.part import run_part
from evaltrack.evaluation.loop import Watch
from evaltrack.privacy.addresses import shown_text

MOST_DEATHS = 10
"""How often the worker of one part may die before the run ends."""
CONNECT_SECONDS = 10.0
_PLACE = re.compile(r"(?:ray://)?([^:/]+):([0-9]{1,5})")
WAIT_SECONDS = 0.25
PAUSE_SECONDS = 1.0
"""After a worker's death, before its part is begun again."""


@contextmanager
def connected_ray(address: str) -> Iterator[RayEngine]:
    """Ray at an address, else where its own settings lead, else started on this machine for the time being.

    A Ray that this process is connected to already is used, and stays connected.

    Raises:
        UsageError: it cannot be reached.
    """
    import ray

    if ray.is_initialized():
        yield RayEngine(ray)
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray that is started here calls nobody
    try:
        _knock(address or os.environ.get("RAY_ADDRESS", ""))
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # noqa: BLE001 - of many kinds, also Python's own
        where = f"`engine_address={address}`" if address else "`engine=ray`"
        what = shown_text(f"{type(error).__name__}: {error}".splitlines()[0])
        cure = "start it with: ray start --head; one that asks for a token needs RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        raise UsageError(f"{where}: Ray cannot be reached ({what}); {cure}") from None
    try:
        yield RayEngine(ray)
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Find out soon that nobody listens there: Ray itself tries for minutes.

    Raises:
        OSError: nobody does.
    """
    if match := _PLACE.fullmatch(address):
        socket.create_connection((match[1], int(match[2])), CONNECT_SECONDS).close()


class RayEngine:
    """The cluster that this process is connected to."""

    name = "ray"

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self.num_cpus = max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(
        self, orders: list[Order], environment: dict[str, str], workers: int, watch: Watch
    ) -> Iterator[PartEnd | None]:
        """Keep so many workers busy until all parts have ended; as `Engine.run`."""
        ray, waiting, deaths = self._ray, deque(orders), Counter[int]()
        task = ray.remote(num_cpus=1, max_retries=0)(run_part)
        shared, under_way = ray.put(environment), dict[Any, Order]()
        try:
            while True:
                while waiting and len(under_way) < workers and not watch.stop():
                    order = waiting.popleft()
                    under_way[task.remote(order.model_dump_json(), shared)] = order
                if not under_way:
                    return
                done, _ = ray.wait(list(under_way), timeout=WAIT_SECONDS)
                if not done:
                    yield None
                for each in done:
                    order = under_way.pop(each)
                    if (end := self._end(each, order, deaths, watch)) is None:
                        waiting.appendleft(order)
                        time.sleep(PAUSE_SECONDS)
                    else:
                        yield end
                        if end.fault is not None:
                            waiting.clear()
        finally:
            for each in under_way:
                ray.cancel(each, force=True)

    def _end(self, task: Any, order: Order, deaths: Counter[int], watch: Watch) -> PartEnd | None:
        """How a part ended; None where its worker died and it is to be begun again.

        Raises:
            InconclusiveError: workers die again and again, or cannot run evaltrack.
        """
        from ray import exceptions

        number = order.part.number
        try:
            return PartEnd.model_validate_json(self._ray.get(task))
        except exceptions.RayTaskError as error:
            cure = "install the same evaltrack and the same Python on the workers"
            last = shown_text(str(error).strip().splitlines()[-1])
            raise InconclusiveError(f"a worker of Ray cannot run part {number}: {last}; {cure}") from None
        except exceptions.RayError as error:
            deaths[number] += 1
            how = shown_text(type(error).__name__)
            if deaths[number] >= MOST_DEATHS:
                cure = "see why in Ray's own logs, give its workers more memory, or set a lower `concurrency=`"
                raise InconclusiveError(
                    f"the worker of part {number} died {MOST_DEATHS} times ({how}); {cure}"
                ) from None
            watch.warn(f"a worker of Ray died ({how}); part {number} goes on from its journal")
            return None
