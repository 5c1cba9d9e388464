"""The work of one worker: a receipt, or a fault as data."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path

import pytest

from evaltrack import __version__
from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.engine import part_journal
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Fault, Order, Part, PartEnd, Receipt
from evaltrack.evaluation.engine.part import run_part
from evaltrack.evaluation.engine.part_file import read_lines, write_lines
from evaltrack.evaluation.engine.part_journal import part_journal as open_part_journal
from evaltrack.evaluation.engine.plan import cut
from evaltrack.evaluation.journal import Journal
from evaltrack.llm import QuotaError
from evaltrack.records import Question

QUESTION = Question(id="1", question="Why?", domain="d")


def order_in(folder: Path, **changes: object) -> Order:
    """An order that can be carried out but for `changes`."""
    part = cut([QUESTION], folder / "questions.jsonl", 1).parts[0]
    order = Order(version=__version__, folder=str(folder), part=part, rounds=1, command={"golden": "g"})
    return order.model_copy(update=changes)


def end_of(order: Order) -> PartEnd:
    """How it ended."""
    return PartEnd.model_validate_json(run_part(order.model_dump_json(), {}))


def test_another_version_is_refused(tmp_path: Path) -> None:
    """The fault names both versions and the worker, and the other workers are to stop."""
    end = end_of(order_in(tmp_path, version="0.0.1"))
    assert end.fault is not None
    assert end.fault.kind == "UsageError"
    assert f"evaltrack {__version__} is installed on the worker" in end.fault.message
    assert "0.0.1 where the run was started; install the same version" in end.fault.message
    assert WorkFolder(tmp_path).is_to_stop


def test_what_is_no_error_of_evaltrack_is_told_with_its_place(tmp_path: Path) -> None:
    """Part, worker and the last lines of the traceback."""
    end = end_of(order_in(tmp_path))
    assert end.fault is not None
    assert end.fault.kind == "InconclusiveError"
    assert end.fault.message.startswith("part 0 failed on ")
    assert "ValidationError" in end.fault.message


def test_a_part_with_a_receipt_is_not_done_again(tmp_path: Path) -> None:
    """Its receipt is given as it is, unless its rows are gone."""
    folder, order = WorkFolder(tmp_path), order_in(tmp_path)
    receipt = Receipt(part=0, rows=1, worker="w")
    folder.write_receipt(receipt)
    assert end_of(order).receipt is None
    write_lines(tmp_path / "part-000000.parquet", [])
    assert end_of(order).receipt == receipt


def test_a_journal_that_another_worker_holds_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a while; then the error says so."""
    monkeypatch.setattr(part_journal, "LOCKED_SECONDS", 0.0)
    monkeypatch.setattr("evaltrack.evaluation.journal.BUSY_SECONDS", 0.01)
    order = order_in(tmp_path)
    with closing(Journal(tmp_path / "part-000000.sqlite", {})):
        started = time.monotonic()
        with pytest.raises(InconclusiveError, match="is held by another worker"):
            open_part_journal(WorkFolder(tmp_path), 0)
        assert time.monotonic() - started < 5
    with closing(open_part_journal(WorkFolder(tmp_path), order.part.number)) as journal:
        assert journal.problem is None


def test_lines_are_kept_as_they_are(tmp_path: Path) -> None:
    """Ids and texts of any kind, in their order, in several batches."""
    lines = [
        (f"{number:03}", "d", number % 3 + 1, number % 2 > 0, "é\u2028\x00" * number, number) for number in range(1200)
    ]
    assert write_lines(tmp_path / "rows", lines) == 1200
    assert list(read_lines(tmp_path / "rows")) == lines


def test_errors_travel_as_data() -> None:
    """With class, message and guide; one that needs more than a message is inconclusive."""
    error = Fault.of(QuotaError("used up")).error()
    assert type(error) is QuotaError
    assert str(error) == "used up"
    assert type(Fault(kind="GoldenError", message="x").error()) is InconclusiveError
    assert type(Fault(kind="SystemExit", message="x").error()) is InconclusiveError


def test_only_what_evaltrack_wrote_is_removed(tmp_path: Path) -> None:
    """Nothing in a folder that is no run's, and no file of others."""
    folder = WorkFolder(tmp_path / "other")
    path = tmp_path / "other"
    path.mkdir()
    (path / "parts.json").write_text("{}")
    folder.remove()
    assert (path / "parts.json").exists()
    assert folder.manifest() is None
    own = WorkFolder(tmp_path / ("a" * 32))
    own.make()
    own.write_num_asked(3, 7)
    own.ask_to_stop()
    assert (own.num_asked({3, 4}), own.num_asked({4})) == (7, 0)
    own.remove()
    assert not Path(own.place).exists()
    assert Part(number=0, start=0, end=1, first=0, questions=1)
