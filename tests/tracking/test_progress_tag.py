"""How far an evaluation is, in a tag of its run."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

from evaltrack.tracking.runs import PROGRESS_SECONDS, PROGRESS_TAG, ProgressTag
from evaltrack.tracking.store import connect


def test_the_tag_is_written_now_and_then(store_uri: str) -> None:
    """Not before some seconds, and then once in as many."""
    store, now = connect(store_uri), [0.0]
    run_id = store.client.create_run("0", tags={"evaltrack.golden": "set"}).info.run_id

    def noted() -> str | None:
        return store.client.get_run(run_id).data.tags.get(PROGRESS_TAG)

    tag = ProgressTag(store, run_id, 5, clock=lambda: now[0])
    tag.add()
    tag.close()
    assert noted() is None
    for now[0] in (PROGRESS_SECONDS, PROGRESS_SECONDS + 1):
        tag.add()
        tag.close()
    assert noted() == "2/5"
    for now[0] in (2 * PROGRESS_SECONDS, 3 * PROGRESS_SECONDS):
        tag.add()
        tag.close()
    assert noted() == "5/5"


def test_a_store_that_stays_away_or_hangs_does_not_stop_the_evaluation() -> None:
    """What cannot be written is left; while a write hangs no other is begun."""
    writes: list[str] = []
    hanging = threading.Event()

    def set_tag(_run_id: str, _name: str, text: str) -> None:
        writes.append(text)
        hanging.wait(20)
        raise OSError("away")

    store: Any = SimpleNamespace(client=SimpleNamespace(set_tag=set_tag))
    now = [0.0]
    tag = ProgressTag(store, "r", 3, clock=lambda: now[0])
    for now[0] in (PROGRESS_SECONDS, 3 * PROGRESS_SECONDS):
        tag.add()
    assert writes == ["1/3"]
    hanging.set()
    tag.close()
    now[0] = 5 * PROGRESS_SECONDS
    tag.add()
    tag.close()
    assert writes == ["1/3", "3/3"]
