"""Starts a project: writes a settings file, a golden set (examples or a sample), a target function and a CI file."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.resources import files
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from evaltrack import __version__
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings_sources import read_settings
from evaltrack.golden.corpus import READERS, read_corpus
from evaltrack.golden.reader import open_golden
from evaltrack.records.question import words_of
from evaltrack.system.files import write_new_files
from evaltrack.targets import default_target

CI = Literal["github", "gitlab", "jenkins", "none"]
SETTINGS, BASELINE = "evaltrack.toml", "baseline.json"
LOOPBACK = re.compile(r"(?:[a-z]+:)*https?://(?:localhost|127\.|0\.0\.0\.0|\[::1?\])", re.IGNORECASE)
OWN_FUNCTION = "python:evaltrack_target:ask"
"""The target that is written if there is no app yet."""

CORPUS_NAMES = ("docs", "doc", "corpus", "documentation", "content", "pages", "wiki", "knowledge", "kb")
"""Default folders of the corpus; the first that holds pages is taken."""

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
        corpus: Folder of pages; None takes `docs` or a similar folder, "" is none. The golden set then holds three
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
    corpus = _pages_in(folder) if corpus is None else corpus
    _check(golden, corpus=corpus, target=target)
    notes = [] if corpus or golden else ["no pages were named: the set is a sample about a library"]
    texts: dict[str, str] = {}
    examples = ""
    if golden:
        domains = open_golden(folder / golden, drafts=True).stats.domains
        if not corpus and not target:
            default_target(folder / golden, domains)
    elif corpus:
        golden = examples = f"golden/{_name(folder / corpus)}.jsonl"
        texts[golden] = _example_set(folder / corpus)
    else:
        golden, corpus = "golden/sample.jsonl", SAMPLE
        texts |= {f"{corpus}/{name}": _text(f"sample/{name}") for name in SAMPLE_PAGES}
        texts[golden] = _text("sample/sample.jsonl")
    run_target = target or (f"bm25:{corpus}" if corpus else "auto")
    texts[SETTINGS] = _settings(golden, run_target, corpus)
    if target == OWN_FUNCTION or (corpus and not target):
        texts["evaltrack_target.py"] = _filled("target.py.txt", CORPUS=_quoted(corpus))
    project = folder / "pyproject.toml"
    if project.is_file() and b"[tool.evaltrack" in project.read_bytes():
        notes.append("evaltrack.toml replaces [tool.evaltrack] of pyproject.toml from now on")
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


def _pages_in(folder: Path) -> str:
    """Return the name of the folder of pages in a project; "" if there is none."""
    return next((name for name in CORPUS_NAMES if any(map(_is_page, (folder / name).rglob("*")))), "")


def _is_page(path: Path) -> bool:
    return path.suffix.lower() in READERS and path.is_file()


def _only_golden(folder: Path) -> str:
    """Return the only golden set in `golden/`; "" if there is none, or several."""
    sets = sorted((folder / "golden").glob("*.json*"))
    return sets[0].relative_to(folder).as_posix() if len(sets) == 1 else ""


def _check(golden: str, **choices: str) -> None:
    """Refuse values that would break the written files."""
    for name, value in {"golden": golden, **choices}.items():
        if not value.isprintable():
            raise UsageError(f"`{name}=` holds characters that cannot be printed; write it without them")
    if "?" in choices["corpus"]:
        raise UsageError(f"corpus {choices['corpus']}: a `?` begins the settings of `bm25:`; rename the folder")
    if choices["target"] == OWN_FUNCTION and golden and not choices["corpus"]:
        raise UsageError(f"target {OWN_FUNCTION} needs a folder of pages; name it with `corpus=`")


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
    requirement = _installed()
    action = _action(requirement)
    made_with = f"evaltrack run > {BASELINE}"
    if not target.startswith(("bm25:", "auto")):
        made_with = f"evaltrack run --trials 3 > {BASELINE}, so that compare can tell flaky questions from broken ones"
    template, path, to_add = CI_FILES[ci]
    fields = {"GOLDEN": _quoted(golden), "TARGET": _quoted(target), "PACKAGE": shlex.quote(requirement)}
    fields |= {"PIP": _quoted(f"pip install {shlex.quote(requirement)}"), "BASELINE": BASELINE, "MADE_WITH": made_with}
    fields |= {"ACTION": action, "COMMENT": action.replace("/scripts/github@", "/scripts/github/comment@")}
    text, notes = _filled(template, **fields), [f"make the baseline and commit it: {made_with}"]
    if to_add:
        notes.append(f"{path}: {to_add}")
    if LOOPBACK.match(target):
        notes.append(f"{path}: a CI job cannot reach the target on your machine; start the target in the job first")
    if "OWNER" in text:
        notes.append(f"{path}: replace OWNER with the owner of your copy of evaltrack")
    return path, text, notes


def _name(corpus: Path) -> str:
    """Return a name for the golden set of a corpus: its folder's, without characters that some systems refuse."""
    return re.sub(r"[^\w-]+", "-", corpus.resolve().name).strip("-") or "first"


def _quoted(text: str) -> str:
    """Return a text in double quotes, as TOML, YAML and Python write it."""
    return json.dumps(text, ensure_ascii=False)


def _filled(name: str, **fields: str) -> str:
    """Return a template with each `@FIELD@` filled in. Values are not filled in again."""
    return re.sub(r"@([A-Z_]+)@", lambda match: fields[match[1]], _text(name))


def _text(name: str) -> str:
    return files("evaltrack.api").joinpath("project", *name.split("/")).read_text("utf-8")


DISTRIBUTION = "mlflow-evaltrack"
"""The package's name for pip. On PyPI another project is called evaltrack, with the same module and command."""

SOMEWHERE = f"git+https://github.com/OWNER/evaltrack@v{__version__}"
"""A placeholder for an unknown address."""


def _action(requirement: str) -> str:
    """Return GitHub's action in the version that pip installs."""
    found = re.search(r"git\+https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?@([\w./-]+)", requirement)
    return f"{found[1]}/scripts/github@{found[2]}" if found else f"OWNER/evaltrack/scripts/github@v{__version__}"


def _installed() -> str:
    """Return pip's requirement for this installation, from its record (PEP 610); without one, the package of the index.

    An installation from a folder or a file cannot be repeated on another machine: it gets a placeholder.
    """
    try:
        noted = json.loads(distribution(DISTRIBUTION).read_text("direct_url.json") or "null")
    except (PackageNotFoundError, ValueError):
        noted = {}
    if noted is None:
        return f"{DISTRIBUTION}=={__version__}"
    commit, url = noted.get("vcs_info", {}).get("commit_id"), urlsplit(noted.get("url", ""))
    if not commit or url.scheme != "https" or not url.hostname:
        return f"{DISTRIBUTION} @ {SOMEWHERE}"
    return f"{DISTRIBUTION} @ git+https://{url.hostname}{f':{url.port}' if url.port else ''}{url.path}@{commit}"
