"""The files of a project that begins with evaltrack, as texts by their paths."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from evaltrack.api.project.origin import origin_of_package
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.records.passage import words_of
from evaltrack.targets import default_target

CI = Literal["github", "gitlab", "jenkins", "none"]
BASELINE = "evaltrack.baseline.json"
OWN_FUNCTION = "python:evaltrack_target:ask"
"""The target that is written where there is no app yet."""

CORPUS_NAMES = ("docs", "doc", "corpus", "documentation", "content", "pages", "wiki", "knowledge", "kb")
"""Folders that are taken for the corpus where none is named, the first that holds pages."""

PAGES = frozenset({".md", ".rst", ".txt", ".html", ".htm"})
FEW_CHUNKS = 50
SAMPLE = "golden/corpus/sample"
SAMPLE_PAGES = ("lending.md", "opening-hours.md")

EXAMPLE_NOTE = "an example: write what your users ask, and take `draft` away"


@dataclass(frozen=True)
class ProjectChoices:
    """What there is: paths are relative to the project's folder, and "" is none."""

    corpus: str = ""
    target: str = ""
    golden: str = ""
    ci: CI = "none"
    package: str = ""


@dataclass(frozen=True)
class ProjectPlan:
    """Texts of files by their paths in `folder`; `examples` is the path of a golden set of examples to edit."""

    folder: Path
    files: Mapping[str, str]
    examples: str = ""
    notes: tuple[str, ...] = ()

    @property
    def in_the_way(self) -> list[str]:
        """The files that are there already."""
        return [name for name in self.files if (self.folder / name).exists() or (self.folder / name).is_symlink()]


def find_corpus(folder: Path) -> str:
    """The folder of pages in a project, by its name; "" where there is none."""
    return next((name for name in CORPUS_NAMES if any(map(_is_page, (folder / name).rglob("*")))), "")


def find_golden(folder: Path) -> str:
    """The only golden set in `golden/`; "" where there is none, or several."""
    sets = sorted(each for pattern in ("*.jsonl", "*.json") for each in (folder / "golden").glob(pattern))
    return sets[0].relative_to(folder).as_posix() if len(sets) == 1 else ""


def plan_project(folder: Path, choices: ProjectChoices) -> ProjectPlan:
    """The files of a project.

    Raises:
        UsageError: the corpus or the golden set cannot be read, or a choice is wrong; nothing was written.
    """
    _check(choices)
    texts: dict[str, str] = {}
    examples, corpus, golden = "", choices.corpus, choices.golden
    if golden:
        domains = open_golden(folder / golden, drafts=True).stats.by["domain"]
        if not corpus and not choices.target:
            default_target(folder / golden, domains)
    elif corpus:
        golden = examples = f"golden/{_name(folder / corpus)}.jsonl"
        texts[golden] = _example_set(folder / corpus)
    else:
        golden, corpus = "golden/sample.jsonl", SAMPLE
        texts |= {f"{corpus}/{name}": _text(f"sample/{name}") for name in SAMPLE_PAGES}
        texts[golden] = _text("sample/sample.jsonl")
    target = choices.target or _search(folder, corpus)
    texts["evaltrack.toml"] = _settings(golden, target, corpus)
    if target == OWN_FUNCTION or (corpus and not choices.target):
        texts["evaltrack_target.py"] = _filled("target.py.txt", CORPUS=_quoted(corpus))
    notes = [] if choices.corpus or choices.golden else ["no pages were named: the set is a sample about a library"]
    project = folder / "pyproject.toml"
    if project.is_file() and b"[tool.evaltrack" in project.read_bytes():
        notes.append("evaltrack.toml counts from now on, and [tool.evaltrack] of pyproject.toml no more")
    if choices.ci != "none":
        path, text, more = _ci_file(folder, choices, golden, target)
        texts[path] = text
        notes += more
    return ProjectPlan(folder, texts, examples, tuple(notes))


def _check(choices: ProjectChoices) -> None:
    """Refuse what would break the files that are written."""
    for name, value in vars(choices).items():
        if not value.isprintable():
            raise UsageError(f"`{name}=` holds characters that cannot be printed; write it without them")
    if "?" in choices.corpus:
        raise UsageError(f"corpus {choices.corpus}: a `?` begins the settings of `bm25:`; rename the folder")
    if choices.target == OWN_FUNCTION and choices.golden and not choices.corpus:
        raise UsageError(f"target {OWN_FUNCTION} is written over a folder of pages; name it with `corpus=`")
    if not re.fullmatch(r"[\w\[\],.<>=!~@:/+ ;-]*", choices.package, re.ASCII):
        raise UsageError("`package=` is no requirement of pip; write one such as evaltrack==0.1.0")


def _example_set(corpus: Path) -> str:
    """Three golden lines to edit: two questions on chunks of the corpus and a negative, all of them drafts."""
    chunks = [chunk for chunk in read_corpus(corpus) if words_of(chunk.text)]
    if not chunks:
        raise UsageError(f"corpus {corpus}: holds no words that could be asked about; name another with `corpus=`")
    asked = [(f"What does `{chunk.id}` answer?", [chunk.id]) for chunk in dict.fromkeys((chunks[0], chunks[-1]))]
    lines = [
        {"id": number, "question": question, "expected_chunks": expected, "draft": True, "notes": EXAMPLE_NOTE}
        for number, (question, expected) in enumerate([*asked, ("What do the pages not answer?", [])], 1)
    ]
    return "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines)


def _search(folder: Path, corpus: str) -> str:
    """BM25 over the corpus. In one of few chunks no score reaches the default floor, so that all would be declined."""
    if not corpus:
        return "auto"
    small = corpus == SAMPLE or len(read_corpus(folder / corpus)) < FEW_CHUNKS
    return f"bm25:{corpus}?floor=0" if small else f"bm25:{corpus}"


def _settings(golden: str, target: str, corpus: str) -> str:
    own = f'# target = "{OWN_FUNCTION}"  # your own app: see evaltrack_target.py\n'
    own *= target.startswith("bm25:")
    lint = f"\n[golden.lint]\ncorpus = {_quoted(corpus)}\n" if corpus and corpus != SAMPLE else ""
    filled = _filled("settings.toml", GOLDEN=_quoted(golden), TARGET=_quoted(target), OTHER_TARGET=own)
    return filled + lint


def _ci_file(folder: Path, choices: ProjectChoices, golden: str, target: str) -> tuple[str, str, list[str]]:
    """Path and text of the CI's file, and what is left to do for it."""
    origin = origin_of_package(choices.package)
    pip = f"pip install {shlex.quote(origin.package)}"
    notes = [f"make the baseline and commit it: evaltrack run > {BASELINE}"]
    if choices.ci == "github":
        path = ".github/workflows/evaltrack.yml"
        fields = {"GOLDEN": _quoted(golden), "TARGET": _quoted(target), "ACTION": origin.action}
        text = _filled("github.yml", PIP=_quoted(pip), BASELINE=BASELINE, **fields)
    elif choices.ci == "gitlab":
        path = _free(folder, ".gitlab-ci.yml", ".gitlab/evaltrack.yml")
        text = _filled("gitlab.yml", PIP=_quoted(pip), BASELINE=BASELINE)
        notes += ["add to .gitlab-ci.yml: include: [{local: .gitlab/evaltrack.yml}]"] * (path != ".gitlab-ci.yml")
    else:
        path = _free(folder, "Jenkinsfile", "Jenkinsfile.evaltrack")
        text = _filled("Jenkinsfile.txt", PACKAGE=shlex.quote(origin.package), BASELINE=BASELINE)
        notes += ["add a pipeline of Jenkinsfile.evaltrack, or take its stage over"] * (path != "Jenkinsfile")
    if "OWNER" in text:
        notes.append(f"{path}: put the owner of your copy of evaltrack in place of OWNER, or name `package=`")
    return path, text, notes


def _free(folder: Path, path: str, other: str) -> str:
    """The usual path of a CI's file, or another one where the project has such a file already."""
    return other if (folder / path).exists() else path


def _is_page(path: Path) -> bool:
    return path.suffix.lower() in PAGES and path.is_file()


def _name(corpus: Path) -> str:
    """A name for the set of a corpus: that of its folder, as far as files can have it everywhere."""
    return re.sub(r"[^\w-]+", "-", corpus.resolve().name).strip("-") or "first"


def _quoted(text: str) -> str:
    """A text as TOML, YAML and Python write it between double quotes."""
    return json.dumps(text, ensure_ascii=False)


def _filled(name: str, **fields: str) -> str:
    """A file with each `@FIELD@` filled in, in one pass: what is filled in is not read again."""
    return re.sub(r"@([A-Z_]+)@", lambda match: fields[match[1]], _text(name))


def _text(name: str) -> str:
    return files(__package__).joinpath(*name.split("/")).read_text(encoding="utf-8")
