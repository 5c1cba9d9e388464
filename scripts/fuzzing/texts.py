"""Readers of text: golden sets, recorded files, saved runs, settings, pages, and the command line."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from evaltrack.api.compare_sides import side_of_file
from evaltrack.cli import main
from evaltrack.compare.engine import compare
from evaltrack.golden.corpus import READERS, parse_chunker, read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.judges.recorded import NotJudgedError, RecordedJudge
from evaltrack.records import Question, Response
from evaltrack.report.comparison_text import comparison_markdown
from evaltrack.report.schemas.comparison import comparison_json
from evaltrack.targets.failures import NotRecordedError
from evaltrack.targets.recorded import open_recorded
from evaltrack.targets.responses import InvalidResponseError
from scripts.fuzzing.reader import OWN, QUESTION, REPO, Reader, kept
from scripts.fuzzing.seeds import ANSWERS, RECORDED, TABLES_OF_TOML, TOML, TREC, first, saved_run


def golden(name: str) -> Callable[[Path, bytes], None]:
    """A golden set called `name`, read to its end as it was checked."""

    def read(folder: Path, raw: bytes) -> None:
        path = folder / name
        path.write_bytes(raw)
        golden, ids = open_golden(path), set[str]()
        for question in golden:
            kept(question=question)
            ids.add(question.id)
        assert len(ids) == len(golden)

    return read


def recorded_target(folder: Path, raw: bytes) -> None:
    """Responses gathered earlier, as JSON Lines or as a TREC run; a few of them asked for."""
    (folder / "recorded").write_bytes(raw)
    target = open_recorded(str(folder / "recorded"), {})
    for key in ("1", "2", "q1", "biz-client-discount"):
        question = QUESTION.model_copy(update={"id": key})
        try:
            kept(asyncio.run(_asked(target, question)))
        except NotRecordedError:
            continue


async def _asked(target: Any, question: Question) -> Response:
    response: Response = await target(question, 5)
    return response


def recorded_judge(folder: Path, raw: bytes) -> None:
    """Verdicts given earlier, on answers and on reasoning."""
    (folder / "verdicts").write_bytes(raw)
    judge = RecordedJudge(folder / "verdicts")
    for key, verdict in judge.verdicts.items():
        kept(verdicts=(verdict,))
        asyncio.run(_judged(judge, QUESTION.model_copy(update={"id": key})))


async def _judged(judge: RecordedJudge, question: Question) -> None:
    try:
        await judge(question, Response(answer="x"))
    except NotJudgedError:
        return


def baseline(folder: Path, raw: bytes) -> None:
    """A saved run, compared with a good one."""
    path = folder / "baseline.json"
    path.write_bytes(raw)
    side = side_of_file(path, folder)
    made = compare(side, good_side(folder))
    comparison_markdown(made)
    json.dumps(comparison_json(made)).encode()


def good_side(folder: Path) -> Any:
    """The other side."""
    path = folder / "good" / "run.json"
    if not path.exists():
        path.parent.mkdir()
        path.write_bytes(saved_run())
    return side_of_file(path, path.parent)


def settings(folder: Path, raw: bytes) -> None:
    """Settings files as the command line reads them: options of a command that then finds no golden set."""
    (folder / "evaltrack.toml").write_bytes(raw)
    try:
        with chdir(folder):
            for command in (["run", "missing.jsonl"], ["golden", "lint", "missing.jsonl"]):
                called(command)
    finally:
        (folder / "evaltrack.toml").unlink()


def corpus(folder: Path, raw: bytes) -> None:
    """A page of a corpus, in each format."""
    pages = folder / "pages"
    pages.mkdir(exist_ok=True)
    for suffix in READERS:
        (pages / f"{suffix[1:]}{suffix}").write_bytes(raw)
    for chunks in (read_corpus(pages), read_corpus(pages, parse_chunker("words:9:2"))):
        assert all(chunk.text.strip() for chunk in chunks)


def lint(folder: Path, raw: bytes) -> None:
    """The command line, in this process: an exit code that is documented, and no traceback."""
    path = folder / ("lint.json" if raw[:1] == b"[" else "lint.jsonl")
    path.write_bytes(raw)
    called(["golden", "lint", str(path)])


def called(arguments: list[str]) -> None:
    """Call the command line; what it may not do is an `AssertionError`."""
    said, code = io.StringIO(), None
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(said):
            main(arguments)
    except SystemExit as end:
        code = end.code
    if code not in {0, 2} or "Traceback" in said.getvalue() or "internal" in said.getvalue()[:40]:
        raise AssertionError(f"exit code {code}: {said.getvalue()[:500]}")


def text_readers() -> dict[str, Reader]:
    """All readers of this area by name."""
    lines = tuple(first(f"{name}.jsonl", 3000) for name in ("food", "travel", "cdc", "reasoning"))
    arrays = (first("wikipedia.json", 1 << 20)[:4000].rpartition(b"},")[0] + b"}]", b'[{"question": "Why?"}]')
    verdicts = tuple(first(f"reasoning_responses/{name}.verdicts.jsonl", 4000) for name in ("strong", "flawed"))
    recorded = (first("reasoning_responses/strong.jsonl", 5000), RECORDED)
    page = (REPO / "golden" / "corpus" / "food" / "allergens.md").read_bytes()[:3000]
    markdown = b"---\ntitle: x\n---\n# A\n## B\ntext\n## B!\nmore\n"
    rst = b"A\n=\n\n.. include:: x\n   :parser: y\n\nB\n-\ntext::\n\n  code\n\nB\n-\n- more\n\n+---+\n| a |\n+---+\n"
    html = b"<title>A</title><nav>x</nav><h1>A</h1><h2 id=b>B<a href=#b>#</a></h2><pre>c</pre><table><tr><td>d</table>e"
    told = (*OWN, InvalidResponseError)
    return {
        "golden set, .jsonl": Reader(golden("set.jsonl"), OWN, (*lines, *arrays[1:])),
        "golden set, .json": Reader(golden("set.json"), OWN, arrays),
        "recorded target": Reader(recorded_target, told, recorded),
        "TREC run": Reader(recorded_target, told, (TREC,), 2),
        "recorded judge, answer": Reader(recorded_judge, OWN, (ANSWERS,)),
        "recorded judge, reasoning": Reader(recorded_judge, OWN, verdicts),
        "saved baseline": Reader(baseline, OWN, (saved_run(),), 3),
        "settings file": Reader(settings, (), (TOML, *TABLES_OF_TOML), 2),
        "corpus page": Reader(corpus, OWN, (page, markdown, rst, html), 1),
        "golden lint": Reader(lint, (), (*lines, *arrays), 1),
    }
