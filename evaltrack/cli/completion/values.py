"""What may stand in an option or argument, by its kind. Names from a store or a folder are data: those that a shell
would read as more than a name are left out.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from click.shell_completion import CompletionItem

from evaltrack.cli.completion.store import Store, stored_names

SAFE = re.compile(r"[\w./@+,=~%-][\w./@+,=~%:?&-]*")
"""Texts that are one plain word in every shell."""

MOST = 200
SOURCE_BYTES = 1 << 20
TARGETS = (
    *("auto", "bm25:", "python:", "recorded:", "traces:", "models:/", "runs:/"),
    *("http://", "https://", "command:", "openai:"),
)
JUDGES = ("auto", "none", "openai:", "recorded:")
CRITERIA = ("minimum", "target", "good", "functional")


def golden_sets(start: str) -> Iterator[CompletionItem[str]]:
    """Golden sets: of the folder that is typed, else here and in `golden/`."""
    folder = start.rpartition("/")[0]
    folders = [folder] if folder or start.startswith("/") else ["", "golden"]
    yield from _items((path for each in folders for path in _paths(each, (".jsonl", ".json"))), start)
    yield from _items(_folders(start), start)


def sweeps(start: str) -> Iterator[CompletionItem[str]]:
    """Files of a sweep in the folder that is typed."""
    yield from _items(_paths(start.rpartition("/")[0], (".yaml", ".yml", ".toml", ".json")), start)
    yield from _items(_folders(start), start)


def files(start: str) -> Iterator[CompletionItem[str]]:
    """The shell's own completion of files."""
    yield CompletionItem(start, type="file")


def folders(start: str) -> Iterator[CompletionItem[str]]:
    """The shell's own completion of folders."""
    yield CompletionItem(start, type="dir")


def targets(start: str) -> Iterator[CompletionItem[str]]:
    """Kinds of targets, and behind one what it can ask here."""
    return _of_kinds(start, TARGETS)


def judges(start: str) -> Iterator[CompletionItem[str]]:
    """Kinds of judges, and behind one what there is."""
    return _of_kinds(start, JUDGES)


def runs(start: str) -> Iterator[CompletionItem[str]]:
    """Ids and names of runs, the newest first."""
    return _of_store(start, lambda store: ((word, each.shown) for each in store.runs for word in (each.id, each.name)))


def runs_and_sets(start: str) -> Iterator[CompletionItem[str]]:
    """What `compare` takes: runs or golden sets."""
    yield from golden_sets(start)
    yield from runs(start)


def experiments(start: str) -> Iterator[CompletionItem[str]]:
    """Names of MLflow's experiments."""
    return _of_store(start, lambda store: ((name, "") for name in store.experiments))


def criteria(start: str) -> Iterator[CompletionItem[str]]:
    """Named success criteria."""
    return _items(CRITERIA, start)


def schemas(start: str) -> Iterator[CompletionItem[str]]:
    """Names of the JSON Schemas."""
    folder = Path(__file__).parents[2] / "api" / "schemas"
    return _items(sorted(path.stem for path in folder.glob("*.json")), start)


KINDS: dict[str, Callable[[str], Iterator[CompletionItem[str]]]] = {
    "golden": golden_sets,
    "sweep": sweeps,
    "file": files,
    "folder": folders,
    "target": targets,
    "judge": judges,
    "run": runs,
    "run or golden": runs_and_sets,
    "experiment": experiments,
    "criterion": criteria,
    "schema": schemas,
}
"""Each kind's function: what is typed so far -> what may stand there."""


def _of_kinds(start: str, kinds: Iterable[str]) -> Iterator[CompletionItem[str]]:
    """Prefixes that fit; where it is one alone, what stands behind it, as shells put a blank after a single answer."""
    fit = [each for each in kinds if each.startswith(start) or (each.endswith(":") and start.startswith(each))]
    if len(fit) != 1 or not fit[0].endswith(":"):
        yield from _items(fit, start)
        return
    (kind,) = fit
    rest = start[len(kind) :]
    found = [f"{kind}{each}" for each in _behind(kind, rest)]
    yield from _items(found or [kind], start)


def _behind(kind: str, rest: str) -> Iterator[str]:
    if kind == "bm25:":
        yield from (each.rstrip("/") for each in _folders(rest))
    elif kind == "recorded:":
        yield from _paths(rest.rpartition("/")[0], (".jsonl", ".txt", ".run"))
        yield from _folders(rest)
    elif kind == "python:":
        yield from _functions()


def _functions() -> Iterator[str]:
    """`module:function` of the modules in this folder, which are read and not imported."""
    for path in islice(sorted(Path().glob("*.py")), MOST):
        with suppress(OSError, ValueError, SyntaxError, RecursionError, MemoryError):
            if path.stat().st_size > SOURCE_BYTES:
                continue
            for node in ast.parse(path.read_bytes()).body:
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                    yield f"{path.stem}:{node.name}"


def _paths(folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """Files of a folder with one of these suffixes, as they would be typed."""
    yield from (name for name, is_folder in _entries(folder) if not is_folder and name.endswith(suffixes))


def _folders(start: str) -> Iterator[str]:
    yield from (f"{name}/" for name, is_folder in _entries(start.rpartition("/")[0]) if is_folder)


def _entries(folder: str) -> list[tuple[str, bool]]:
    """Names in a folder, as they would be typed, and whether each is a folder; hidden ones are left out."""
    with suppress(OSError, ValueError), os.scandir(folder or ("/" if folder else ".")) as found:
        entries = [(each.name, each.is_dir()) for each in islice(found, 10 * MOST) if not each.name.startswith(".")]
        return [(f"{folder}/{name}" if folder else name, is_folder) for name, is_folder in sorted(entries)]
    return []


def _of_store(start: str, words: Callable[[Store], Iterable[tuple[str, str]]]) -> Iterator[CompletionItem[str]]:
    given = {word: text for word, text in words(stored_names()) if word}
    for word, text in islice(given.items(), MOST):
        for item in _items([word], start):
            item.help = text or None
            yield item


def _items(words: Iterable[str], start: str) -> Iterator[CompletionItem[str]]:
    fit = (word for word in words if word.startswith(start) and SAFE.fullmatch(word))
    yield from (CompletionItem(word) for word in islice(fit, MOST))
