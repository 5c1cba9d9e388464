"""Starts a project: writes a settings file, a golden set (examples or a sample), a target function and a CI file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from evaltrack import __version__
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings_sources import read_settings
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.records.question import words_of
from evaltrack.system.files import write_new_files
from evaltrack.targets import default_target

CI = Literal["github", "gitlab", "jenkins", "none"]
SETTINGS, BASELINE = "evaltrack.toml", "baseline.json"
OWN_FUNCTION = "python:evaltrack_target:ask"
"""The target that is written if there is no app yet."""

CORPUS = "docs"
"""Default folder of the corpus."""

SAMPLE = "golden/corpus/sample"
SAMPLE_PAGES = ("lending.md", "opening-hours.md")

CI_FILES = {
    "github": ("github.yml", ".github/workflows/evaltrack.yml", ""),
    "gitlab": (
        "gitlab.yml",
        ".gitlab/evaltrack.yml",
        "add `include: [{local: .gitlab/evaltrack.yml}]` to .gitlab-ci.yml",
    ),
    "jenkins": (
        "Jenkinsfile.txt",
        "Jenkinsfile.evaltrack",
        "make a pipeline of it, or copy its stage into yours",
    ),
}
"""The template of each CI, its file, and the step that remains then."""

QUOTE_WORDS = 12
"""Words of the quotations in example questions."""

EXAMPLE_NOTE = "an example: write a question of your users, and remove `draft`"


@dataclass(frozen=True)
class ProjectPlan:
    """The texts of the written files by their paths in `folder`, and the paths of `existing` files, which were not.

    `examples` is the path of a golden set of examples to edit.
    """

    folder: Path
    files: Mapping[str, str]
    existing: Sequence[str]
    examples: str
    notes: Sequence[str]


def init_project(
    folder: str | os.PathLike[str] = ".",
    *,
    corpus: str | None = None,
    target: str = "",
    golden: str | None = None,
    ci: CI = "none",
    force: bool = False,
) -> ProjectPlan:
    """Write those of `evaltrack.toml`, a golden set, a target, a CI file and `.gitignore` that do not exist yet.

    An existing `evaltrack.toml` is not written, and gives the golden set and the target.

    Args:
        folder: The project's folder, made if it is missing. Other paths are relative to it.
        corpus: Folder of pages; None takes `docs` if it exists, "" is none. The golden set then holds three
            example questions to edit, which are drafts that no run asks. Without a corpus it is a sample that can be
            run at once.
        target: The name of a target (``http://127.0.0.1:8000/ask``). "" is BM25 over the corpus, with a function as a
            start for your own app; ``python:evaltrack_target:ask`` is that function.
        golden: An existing golden set; none is written then. None takes the only one in `golden/`, "" is none.
        ci: The CI whose file is written: ``github``, ``gitlab``, ``jenkins`` or ``none``.
        force: True replaces existing files.

    Raises:
        UsageError: a choice is wrong. Nothing was written.
    """
    folder = Path(folder)
    if (folder / SETTINGS).is_file() and not force:
        run = read_settings(folder).get("run", {})
        golden = str(run["golden"]) if golden is None and run.get("golden") else golden
        target = target or str(run.get("target") or "")
    golden = _only_golden(folder) if golden is None else golden
    if corpus is None:
        corpus = CORPUS if (folder / CORPUS).is_dir() else ""
    if target == OWN_FUNCTION and golden and not corpus:
        raise UsageError(f"target {OWN_FUNCTION} needs a folder of pages; name it with `corpus=`")
    notes = [] if corpus or golden else ["no pages were named: the set is a sample about a library"]
    texts: dict[str, str] = {}
    examples = ""
    if golden:
        domains = open_golden(folder / golden, drafts=True).stats.domains
        if not corpus and not target:
            default_target(folder / golden, domains)
    elif corpus:
        golden = examples = f"golden/{(folder / corpus).resolve().name}.jsonl"
        texts[golden] = _example_set(folder / corpus)
    else:
        golden, corpus = "golden/sample.jsonl", SAMPLE
        texts |= {f"{corpus}/{name}": _text(f"sample/{name}") for name in SAMPLE_PAGES}
        texts[golden] = _text("sample/sample.jsonl")
    run_target = target or (f"bm25:{corpus}" if corpus else "auto")
    texts[SETTINGS] = _settings(golden, run_target, corpus)
    if target == OWN_FUNCTION or (corpus and not target):
        texts["evaltrack_target.py"] = _filled("target.py.txt", CORPUS=_quoted(corpus))
    if ci != "none":
        path, text, steps = _ci_file(ci, golden, run_target)
        texts[path] = text
        notes += steps
    if not (folder / ".gitignore").exists():  # with `force` too, the user's own file stays
        texts[".gitignore"] = "mlflow.db*\nmlruns/\n"
    existing = [name for name in texts if os.path.lexists(folder / name) and not force]
    written = {name: text for name, text in texts.items() if name not in existing}
    write_new_files({folder / name: [text] for name, text in written.items()}, force=force)
    return ProjectPlan(folder, written, existing, examples if examples in written else "", notes)


def _only_golden(folder: Path) -> str:
    """Return the only golden set in `golden/`; "" if there is none, or several."""
    sets = sorted((folder / "golden").glob("*.json*"))
    return sets[0].relative_to(folder).as_posix() if len(sets) == 1 else ""


def _example_set(corpus: Path) -> str:
    """Return three golden lines to edit, all drafts: two questions on chunks of the corpus and a negative."""
    chunks = [chunk for chunk in read_corpus(corpus) if words_of(chunk.text)]
    if not chunks:
        raise UsageError(f"corpus {corpus}: holds no words that could be asked about; name another with `corpus=`")
    lines: list[dict[str, object]] = [
        {"question": f"What does `{chunk.id}` answer?", "expected_passages": [{"quote": _quote(chunk.text)}]}
        for chunk in dict.fromkeys((chunks[0], chunks[-1]))
    ]
    lines.append({"question": "What do the pages not answer?", "expected_chunks": []})
    lines = [{"id": number, **line, "draft": True, "notes": EXAMPLE_NOTE} for number, line in enumerate(lines, 1)]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _quote(text: str) -> str:
    """Return the first words of the longest line, which any retriever of the page returns, however it cuts pages."""
    line = max(text.splitlines(), key=lambda line: len(words_of(line)))
    return " ".join([word for word in line.split() if words_of(word)][:QUOTE_WORDS])


def _settings(golden: str, target: str, corpus: str) -> str:
    own = f'# target = "{OWN_FUNCTION}"  # your own app: see evaltrack_target.py\n'
    own *= target.startswith("bm25:")
    lint = f"\n[golden.lint]\ncorpus = {_quoted(corpus)}\n" if target == OWN_FUNCTION else ""  # other ids are its own
    filled = _filled("settings.toml", GOLDEN=_quoted(golden), TARGET=_quoted(target), OTHER_TARGET=own)
    return filled + lint


def _ci_file(ci: CI, golden: str, target: str) -> tuple[str, str, list[str]]:
    """Return path and text of the CI's file, and the steps that remain."""
    made_with = f"evaltrack run > {BASELINE}"
    if not target.startswith(("bm25:", "auto")):
        made_with = f"evaltrack run --trials 3 > {BASELINE}, so that compare can tell flaky questions from broken ones"
    template, path, to_add = CI_FILES[ci]
    fields = {"GOLDEN": _quoted(golden), "TARGET": _quoted(target), "BASELINE": BASELINE, "MADE_WITH": made_with}
    text = _filled(template, VERSION=__version__, **fields)
    notes = [f"make the baseline and commit it: {made_with}"]
    if to_add:
        notes.append(f"{path}: {to_add}")
    notes.append(f"{path}: replace OWNER with the owner of your copy of evaltrack")
    return path, text, notes


def _quoted(text: str) -> str:
    """Return a text in double quotes, as TOML, YAML and Python write it."""
    return json.dumps(text, ensure_ascii=False)


def _filled(name: str, **fields: str) -> str:
    """Return a template with each `@FIELD@` filled in. Values are not filled in again."""
    return re.sub(r"@([A-Z_]+)@", lambda match: fields[match[1]], _text(name))


def _text(name: str) -> str:
    return files("evaltrack.api").joinpath("project", *name.split("/")).read_text("utf-8")
