"""Judges for the tests: a scripted model on a real server, what it may write of a response, and small golden sets."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from evaltrack.cli import main
from evaltrack.records import Dimensions, Judge, Observed, Question, Response, Verdict

from .conftest import REPO
from .files import data, put
from .openai_behaviours import Behaviour, Reply, script
from .openai_requests import Json, text_of
from .openai_server import OpenAIServer

SHOWCASE = REPO / "golden" / "reasoning.jsonl"
RESPONSES = REPO / "golden" / "reasoning_responses"


def recordings(kind: str) -> dict[str, str]:
    responses = RESPONSES / f"{kind}.jsonl"
    return {"target": f"recorded:{responses}", "judge": f"recorded:{responses.with_suffix('.verdicts.jsonl')}"}


KINDS = ("strong", "middling", "flawed")
JUDGE = "openai:gpt-4o-mini"

ANSWER: str = data("faithful_reply.json")["answer"]
"""A response: markup, lists, line breaks, typographic quotation marks and dashes."""

SEEN: dict[str, Any] = data("faithful_reply.json")["reply"]
"""A faithful judge's reply on `ANSWER`: 64 points, tier 2, band 2 claimed and earned."""


def reply(**changes: Any) -> str:
    return json.dumps({**SEEN, **changes})


OPTIONS = "Hold it, sell it, rent it, lend it, swap it or give it away; first yes, then no, then half, then whole."
"""The end of a response that allows any grade: six hypotheses and four shifts."""


def graded_reply(grade: float) -> str:
    """An observation of a response with `OPTIONS` that gives each dimension one grade: ten times as many points."""
    ways, turns = (part.replace(" or ", ", ").split(", ") for part in OPTIONS.rstrip(".").split("; "))
    quoted = {"hypotheses": ways, "num_hypotheses": len(ways), "shifts": turns, "num_shifts": len(turns)}
    if not grade:
        quoted = {"hypotheses": [], "num_hypotheses": 0, "shifts": [], "num_shifts": 0}
    nothing = {"crux_treatment": "none", "crux_quotes": [], "uncertainty_treatment": "none", "mode": "converge"}
    nothing |= {"confidence_quotes": [], "confidence": None}
    return reply(**quoted, **nothing, dimensions=dict.fromkeys(Dimensions.model_fields, grade))


def scored_reply(score: float) -> str:
    names = ("accuracy", "completeness", "relevance", "overall_score")
    return json.dumps({"reasoning": "so", **dict.fromkeys(names, score)})


def judged(judge: Judge, *asked: tuple[Question, Response]) -> Verdict:
    """The verdict on the last of these, after which the judge is closed."""

    async def ask() -> Verdict:
        try:
            return [await judge(*each) for each in asked][-1]
        finally:
            await judge.aclose()

    return asyncio.run(asyncio.wait_for(ask(), 60))


def by_text(texts: Mapping[str, Sequence[str | Reply]]) -> Behaviour:
    """A model that looks which of the texts it is shown: the n-th time it sees one, it gives its n-th reply."""
    asked: Counter[str] = Counter()

    def behave(request: Json, _call: int) -> Reply:
        shown = "\n".join(text_of(request, "user"))
        found = next(text for text in texts if text in shown)
        given = texts[found][min(asked[found], len(texts[found]) - 1)]
        asked[found] += 1
        return given if isinstance(given, Reply) else Reply(given)

    return behave


@contextmanager
def serving(*replies: str | Reply, behaviour: Behaviour | None = None) -> Iterator[OpenAIServer]:
    made = [each if isinstance(each, Reply) else Reply(each) for each in replies]
    with OpenAIServer(behaviour or script(*made)) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


@contextmanager
def store_in(folder: Path, empty_database: Path) -> Iterator[str]:
    """A fresh SQLite store in a folder, which is where we are meanwhile; nothing of the user's is touched."""
    shutil.copy(empty_database, folder / "mlflow.db")
    with closing(sqlite3.connect(folder / "mlflow.db")) as store, store:  # else all stores have their artifacts there
        store.execute("update experiments set artifact_location = ?", [f"{folder}/mlruns/0"])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("EVALTRACK_CACHE_DIR", str(folder / "cache"))
        patch.setenv("EVALTRACK_STATE_DIR", str(folder / "state"))
        yield f"sqlite:///{folder}/mlflow.db"


def golden_set(
    folder: Path,
    answers: Mapping[Any, str | None],
    name: str = "small",
    sources: Sequence[Mapping[str, str]] | None = None,
    **fields: Any,
) -> tuple[Path, str]:
    """A golden set with a question for each answer, and the name of a recorded target that gives them.

    Each answer comes with the same `sources`, where some are given; None without them is a target that failed.
    """
    folder.mkdir(exist_ok=True, parents=True)
    golden, given = folder / f"{name}.jsonl", folder / f"{name}.answers.jsonl"
    put(golden, [{"id": key, "question": f"What of {key}?", **fields} for key in answers])
    used = {"prompt_tokens": 10, "completion_tokens": 5}  # told, so that nothing need be counted
    brought = {} if sources is None else {"sources": list(sources)}
    given_answers = {
        key: {"error": "no answer"} if answer is None and not brought else {"answer": answer, "usage": used, **brought}
        for key, answer in answers.items()
    }
    put(given, [{"id": key, **fields_of_line} for key, fields_of_line in given_answers.items()])
    return golden, f"recorded:{given}"


def labels_file(path: Path, rows: Sequence[Mapping[str, Any]], judge: str = "people") -> Path:
    path.write_text("".join(json.dumps({"judge": judge, "reasoning": "so", **row}) + "\n" for row in rows))
    return path


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RESPONSES / name).read_text(encoding="utf-8").splitlines()]


def observed(row: Mapping[str, Any]) -> Observed:
    return Observed.model_validate({name: row[name] for name in Observed.model_fields if name in row})


def cli(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)
