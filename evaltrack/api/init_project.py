"""Starts a project: settings, a golden set, a target and a CI file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from evaltrack import __version__
from evaltrack.errors import UsageError
from evaltrack.golden.corpus import read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.records.passage import words_of
from evaltrack.system.files import new_files
from evaltrack.targets import default_target


def init_project(
    folder: str | os.PathLike[str] = ".",
    *,
    corpus: str = "",
    target: str = "",
    golden: str = "",
    ci: CI = "none",
    package: str = "",
    force: bool = False,
) -> ProjectPlan:
    """Write `evaltrack.toml`, a first golden set, a target and the file of a CI.

    Args:
        folder: The project's folder, made where there is none. Other paths are relative to it.
        corpus: Folder of pages. The golden set then holds three example questions to edit, which are drafts that no run
            asks; without a corpus it is a sample that can be run at once.
        target: What is asked: a target's name (``http://127.0.0.1:8000/ask``); "" is BM25 over the corpus, with a
            function to begin one's own app with beside it; ``python:evaltrack_target:ask`` is that function.
        golden: A golden set that is there; none is written then.
        ci: Whose file is written: ``github``, ``gitlab``, ``jenkins`` or ``none``.
        package: What the CI installs, as pip takes it; "" is what this installation was made from.
        force: Whether files that are there are replaced.

    Raises:
        UsageError: files are in the way, all of which are named; or a choice is wrong. Nothing was written.
    """
    return write_project(plan_project(Path(folder), ProjectChoices(corpus, target, golden, ci, package)), force=force)


def write_project(plan: ProjectPlan, *, force: bool = False) -> ProjectPlan:
    """Write the files of a plan, all of them or none.

    Raises:
        UsageError: files are in the way, all of which are named, or cannot be written.
    """
    if plan.in_the_way and not force:
        names = ", ".join(plan.in_the_way)
        raise UsageError(f"{plan.folder}: in the way: {names}; move them, or replace them with `force=True`")
    with new_files(force=force) as files:
        for name, text in plan.files.items():
            with files.open(plan.folder / name) as file:
                file.write(text)
    return plan


CI = Literal["github", "gitlab", "jenkins", "none"]
BASELINE = "evaltrack.baseline.json"
LOOPBACK = re.compile(r"(?:[a-z]+:)*https?://(?:localhost|127\.|0\.0\.0\.0|\[::1?\])", re.IGNORECASE)
OWN_FUNCTION = "python:evaltrack_target:ask"
"""The target that is written where there is no app yet."""

CORPUS_NAMES = ("docs", "doc", "corpus", "documentation", "content", "pages", "wiki", "knowledge", "kb")
"""Folders that are taken for the corpus where none is named, the first that holds pages."""

PAGES = frozenset({".md", ".rst", ".txt", ".html", ".htm"})
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
    target = choices.target or (f"bm25:{corpus}" if corpus else "auto")
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
    made_with = f"evaltrack run > {BASELINE}"
    if not target.startswith(("bm25:", "auto")):
        made_with = f"evaltrack run --trials 3 > {BASELINE}, so that compare can tell flaky questions from broken ones"
    notes, baseline = [f"make the baseline and commit it: {made_with}"], {"BASELINE": BASELINE, "MADE_WITH": made_with}
    if choices.ci == "github":
        path = ".github/workflows/evaltrack.yml"
        comment = origin.action.replace("/scripts/github@", "/scripts/github/comment@")
        fields = {"GOLDEN": _quoted(golden), "TARGET": _quoted(target), "ACTION": origin.action, "COMMENT": comment}
        text = _filled("github.yml", PIP=_quoted(pip), **baseline, **fields)
    elif choices.ci == "gitlab":
        path = _free(folder, ".gitlab-ci.yml", ".gitlab/evaltrack.yml")
        text = _filled("gitlab.yml", PIP=_quoted(pip), **baseline)
        notes += ["add to .gitlab-ci.yml: include: [{local: .gitlab/evaltrack.yml}]"] * (path != ".gitlab-ci.yml")
    else:
        path = _free(folder, "Jenkinsfile", "Jenkinsfile.evaltrack")
        text = _filled("Jenkinsfile.txt", PACKAGE=shlex.quote(origin.package), **baseline)
        notes += ["add a pipeline of Jenkinsfile.evaltrack, or take its stage over"] * (path != "Jenkinsfile")
    if LOOPBACK.match(target):
        notes.append(f"{path}: a CI does not reach the target on your machine; start it in the job before it is asked")
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
    return files("evaltrack.api").joinpath("project", *name.split("/")).read_text("utf-8")


DISTRIBUTION = "mlflow-evaltrack"
"""What pip calls it; on PyPI another project is called evaltrack, and has the same module and command."""

SOMEWHERE = f"git+https://github.com/OWNER/evaltrack@v{__version__}"
"""In place of an address that is not known."""


@dataclass(frozen=True)
class Origin:
    """The requirement that pip installs, and GitHub's action of the same version."""

    package: str
    action: str


def origin_of_package(package: str = "") -> Origin:
    """The requirement `package`, else what pip noted down about this installation (PEP 610).

    An installation from a folder or a file says nothing that another machine could use: it gets a placeholder.
    """
    requirement = package or _requirement(_direct_url())
    found = re.search(r"git\+https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?@([\w./-]+)", requirement)
    action = f"{found[1]}/scripts/github@{found[2]}" if found else f"OWNER/evaltrack/scripts/github@v{__version__}"
    return Origin(requirement, action)


def _requirement(direct: dict[str, Any] | None) -> str:
    """The requirement that a `direct_url.json` describes; None is that of an index."""
    if direct is None:
        return f"{DISTRIBUTION}=={__version__}"
    version, url = direct.get("vcs_info"), urlsplit(str(direct.get("url", "")))
    if not isinstance(version, dict) or url.scheme != "https" or not url.hostname:
        return f"{DISTRIBUTION} @ {SOMEWHERE}"
    port = f":{url.port}" if url.port else ""
    return f"{DISTRIBUTION} @ git+https://{url.hostname}{port}{url.path}@{version.get('commit_id')}"


def _direct_url() -> dict[str, Any] | None:
    """What pip noted down where it did not install from an index; a checkout that is not installed is a folder."""
    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
        value = json.loads(text) if text else None
    except (PackageNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else None
