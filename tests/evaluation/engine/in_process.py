"""An engine that carries out orders in this process, one after the other: what workers do without a cluster."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.engine.asking import ask_on
from evaltrack.evaluation.engine.orders import Order, PartEnd
from evaltrack.evaluation.engine.part import run_part
from evaltrack.evaluation.engine.worker import close_worker
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.loop import Watch
from evaltrack.evaluation.plan import planned
from evaltrack.records import Row

TARGET = """
import hashlib

def ask(question, k):
    with open("asked", "ab", buffering=0) as file:
        file.write(question.encode() + b"\\n")
    number = int(hashlib.sha256(question.encode()).hexdigest(), 16)
    if number % 3 == 0:
        raise ValueError("three")
    text = "\\u2028 x\\r\\n"
    sources = [{"chunk_id": f"00{number % n}", "text": text * n, "score": number % 97 / 7} for n in (2, 3, 5)]
    return {"answer": f"It is {number % 1000}.", "sources": sources, "prompt_tokens": 3, "completion_tokens": 4}
"""
OF_THE_CLOCK = {"started_at": 0.0, "seconds": 0.0}


class InProcess:
    """Carries out orders; `before` is called with each of them."""

    name = "in-process"

    def __init__(self, num_cpus: int = 2, before: Callable[[Order], object] = lambda _: None) -> None:
        self.num_cpus, self.before = num_cpus, before
        self.orders: list[Order] = []

    def run(
        self, orders: list[Order], environment: dict[str, str], workers: int, watch: Watch
    ) -> Iterator[PartEnd | None]:
        """The last part ends first, as where one worker is slower than another."""
        assert 1 <= workers <= self.num_cpus
        for order in reversed(orders):
            if watch.stop():
                return
            self.before(order)
            yield None
            self.orders.append(order)
            yield PartEnd.model_validate_json(run_part(order.model_dump_json(), environment))


class Project:
    """A folder with a golden set and a target that counts what it is asked."""

    def __init__(self, folder: Path, questions: list[dict[str, Any]] | int = 20, ending: str = "jsonl") -> None:
        self.folder, self.golden = folder, folder / f"golden.{ending}"
        (folder / "mine.py").write_text(TARGET)
        self.write(questions)
        self.rows: list[Row] = []
        self.warnings: list[str] = []
        self.notes: tuple[str, ...] = ()
        self.stop = lambda: False

    def write(self, questions: list[dict[str, Any]] | int) -> None:
        """Write the golden set."""
        if isinstance(questions, int):
            questions = [question_of(number) for number in range(questions)]
        text = json.dumps(questions) if self.golden.suffix == ".json" else "\n".join(map(json.dumps, questions))
        self.golden.write_text(text)

    def asked(self) -> list[str]:
        """The questions that were asked since the last call."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    def ask(
        self,
        engine: InProcess | None = None,
        *,
        name: str = "0" * 32,
        retry_errors: bool = False,
        engine_folder: str = "",
        **settings: Any,
    ) -> list[Row]:
        """The rows, as they are handed on, of an engine or of this process; a journal that is there is gone on with."""
        self.rows = []
        config = EvaluationConfig.of(**{"judge": "none", "in_process": True, "concurrency": 4} | settings)
        path = self.folder / "state" / f"{name}.sqlite"
        watch = Watch(self.stop, lambda *_: None, self.warnings.append)
        with (
            planned(str(self.golden), config, "python:mine:ask", config.selection) as plan,
            closing(Journal(path, {}, retry_errors=retry_errors)) as journal,
        ):
            self.journal = journal
            try:
                if engine is None:
                    plan.ask(self.rows.append, memory=journal, watch=watch)
                else:
                    own = replace(plan.command, settings=plan.settings.with_(engine_folder=engine_folder))
                    self.notes = ask_on(engine, replace(plan, command=own), journal, self.rows.append, watch)
            finally:
                close_worker()
        return self.rows


def question_of(number: int, **more: Any) -> dict[str, Any]:
    """A golden line."""
    return {
        "id": f"{number:03}",
        "question": f"What is number {number}?",
        "expected_chunks": [f"00{number % 5}"],
        **more,
    }


def timeless(rows: list[Row]) -> list[Row]:
    """The rows in the order of the golden set, without what the clock says."""
    rows = sorted(rows, key=lambda row: (row.position, row.trial or 0))
    return [row.model_copy(update=OF_THE_CLOCK) for row in rows]
