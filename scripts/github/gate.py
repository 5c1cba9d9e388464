"""The steps of the action that are more than a line of shell; `action.yml` says when each is run.

Only Python's standard library is used, started with `python -I`, so that nothing in the work tree is imported. What
lies in the work tree is the pull request's: files of these steps are kept in $RUNNER_TEMP, and `base` takes the
baseline and the settings from the commit that the pull request is to be merged into.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

FILES = Path(os.environ["RUNNER_TEMP"], "evaltrack")
RUN, PAGE = FILES / "evaluation.json", FILES / "evaltrack.md"
FORMS = (".html", ".md", ".json", ".xml")

SETTINGS = ("evaltrack.toml", "pyproject.toml")
"""Where evaltrack finds its settings, the first that there is."""

MARKER = "<!-- evaltrack:"
"""How the first line of a page begins."""

SECONDS = 300
"""For one call of git or of GitHub."""


def base() -> None:
    """Take the baseline file and the settings from the commit of $REF; without one, from the work tree."""
    ref, baseline, config = (os.environ.get(name, "") for name in ("REF", "BASELINE", "EVALTRACK_CONFIG"))
    shutil.rmtree(FILES, ignore_errors=True)
    if ref:
        commit = _commit(ref)
        print(f"Baseline file and settings are those of {ref} ({commit[:12]}).")
        baseline = baseline and str(_file(commit, ref, baseline))
        config = str(_file(commit, ref, config) if config else _settings(commit))
    _output("baseline", baseline)
    _output("config", config)


def evaluate() -> None:
    """`evaltrack run`; its exit code is the step's output."""
    golden, target = os.environ["GOLDEN"], os.environ["TARGET"]
    RUN.unlink(missing_ok=True)
    options = ["--set", f"evaluation_json={RUN}", *_options("run-options")]
    options += ["--target", target] if target else []
    _output("code", str(_evaltrack("run", golden, *options)))


def compare() -> None:
    """`evaltrack compare` of the run that `evaluate` made, with the page as the job's summary."""
    pages = [FILES / f"evaltrack{form}" for form in FORMS]
    for page in pages:
        page.unlink(missing_ok=True)
    code = os.environ.get("RUN") or "0"
    if code != "0" and not RUN.is_file():
        print(f"There is nothing to compare: the evaluation ended with exit code {code}.")
    else:
        run = [json.loads(RUN.read_bytes())["metadata"]["mlflow_run_id"]] if RUN.is_file() else []
        baseline = ["--baseline", os.environ["BASELINE"]] if os.environ.get("BASELINE") else []
        files = [part for page in pages for part in ("-o", str(page))]
        code = str(_evaltrack("compare", *run, *_options("compare-options"), *baseline, "--github", *files))
    if PAGE.is_file():
        with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("ab") as summary:
            summary.write(PAGE.read_bytes())
    _output("code", code)


def comment() -> None:
    """Write the page as a comment of the pull request, over the one written before; a failure is a warning."""
    if not PAGE.is_file():
        return
    comments = f"repos/{os.environ['GITHUB_REPOSITORY']}/issues/{os.environ['NUMBER']}/comments"
    try:
        marker = PAGE.read_text(encoding="utf-8").partition("\n")[0]
        earlier = _own_comment(comments, marker)
        patch = ("-X", "PATCH", f"repos/{os.environ['GITHUB_REPOSITORY']}/issues/comments/{earlier}")
        _gh(*(patch if earlier else (comments,)), "-F", f"body=@{PAGE}")
    except (OSError, ValueError, LookupError, TypeError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", "") or str(error)
        print(f"::warning title=evaltrack::{_data(f'the comment was not written: {reason.strip()[:500]}')}")


def _own_comment(comments: str, marker: str) -> int | None:
    """The first comment that begins with the marker and was written with this token; anybody can write a marker.

    GraphQL tells whose the token is also where it is the job's own, to which REST answers 403.
    """
    if not marker.startswith(MARKER):
        raise ValueError(f"{PAGE.name} does not begin with `{MARKER}`")
    login = json.loads(_gh("graphql", "-f", "query={viewer{login}}"))["data"]["viewer"]["login"]
    for each in _pages(_gh("--paginate", f"{comments}?per_page=100")):
        if (each["user"] or {}).get("login") == login and (each["body"] or "").startswith(marker):
            return int(each["id"])
    return None


def _pages(text: str) -> Iterator[dict[str, Any]]:
    """The elements of one JSON array after another, as `gh api --paginate` prints them."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        page, end = decoder.raw_decode(rest)
        yield from page
        rest = rest[end:].lstrip()


def _gh(*arguments: str) -> str:
    command = ["gh", "api", *arguments]
    return subprocess.run(
        command, capture_output=True, check=True, encoding="utf-8", errors="replace", timeout=SECONDS
    ).stdout


def _evaltrack(*arguments: str) -> int:
    """Its exit code. Where no store is set it is in our folder: one in the work tree may be the pull request's."""
    FILES.mkdir(parents=True, exist_ok=True)
    env = dict(os.environ)
    if not env.get("MLFLOW_TRACKING_URI"):
        env["MLFLOW_TRACKING_URI"] = f"sqlite:///{(FILES / 'mlflow.db').as_posix()}"
        env.setdefault("_MLFLOW_SERVER_ARTIFACT_ROOT", (FILES / "mlruns").as_posix())
    sys.stdout.flush()
    return subprocess.run(["evaltrack", *arguments], env=env, check=False).returncode


def _options(name: str) -> list[str]:
    """All lines of $OPTIONS, split into words as a shell does; nothing is expanded or executed."""
    try:
        return shlex.split(os.environ.get("OPTIONS", "").replace("\\\n", " "))
    except ValueError as error:
        _fail(f"{name}: {error}; write them as in a shell, each quote closed")


def _commit(ref: str) -> str:
    """The commit called `ref`, fetched alone where the checkout does not hold it."""
    if ref.startswith("-"):
        _fail(f"baseline-ref: `{ref}` is no commit or branch")
    commit = _git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if commit.returncode:
        fetch = _git("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "origin", ref)
        commit = _git("rev-parse", "--verify", "--quiet", "FETCH_HEAD^{commit}")
        if fetch.returncode or commit.returncode:
            reason = fetch.stderr.decode(errors="replace").strip()[:500]
            cure = "give actions/checkout `fetch-depth: 0`, or name a commit or branch that can be fetched"
            _fail(f"baseline-ref: `{ref}` is not in the checkout and cannot be fetched ({reason}); {cure}")
    return commit.stdout.decode().strip()


def _file(commit: str, ref: str, path: str) -> Path:
    """The file as it is in the commit, in our folder; one outside of the work tree is no pull request's."""
    inside = _inside(path)
    if inside is None:
        return Path(path)
    if (copy := _copy(commit, inside)) is None:
        outside = "keep one that the workflow makes outside of the work tree, in ${{ runner.temp }}"
        _fail(f"`{path}` is not in {ref} ({commit[:12]}), which decides; merge it there first, or {outside}")
    return copy


def _settings(commit: str) -> Path:
    """The settings file of the commit; an empty one where it has none, so that no other is looked for."""
    for name in SETTINGS:
        if (inside := _inside(name)) and (copy := _copy(commit, inside)):
            return copy
    return _save(SETTINGS[0], b"")


def _inside(path: str) -> str | None:
    """The path from the top of the work tree; None where it leads out of it."""
    top = _git("rev-parse", "--show-toplevel")
    if top.returncode:
        _fail(f"baseline-ref: {top.stderr.decode(errors='replace').strip()}; run actions/checkout before")
    folder = Path(top.stdout.decode().strip()).resolve()
    for absolute in (Path(os.path.normpath(Path.cwd().resolve() / path)), Path(path).resolve()):
        if absolute.is_relative_to(folder):
            return absolute.relative_to(folder).as_posix()
    return None


def _copy(commit: str, inside: str) -> Path | None:
    content = _git("cat-file", "blob", f"{commit}:{inside}")
    return _save(Path(inside).name, content.stdout) if content.returncode == 0 else None


def _save(name: str, content: bytes) -> Path:
    path = FILES / "base" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    return subprocess.run(["git", *arguments], env=env, capture_output=True, check=False, timeout=SECONDS)


def _output(name: str, value: str) -> None:
    if "\n" in value:
        _fail(f"{name}: a path is on one line")
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as outputs:
        outputs.write(f"{name}={value}\n")


def _fail(message: str) -> NoReturn:
    print(f"::error title=evaltrack::{_data(message)}")
    sys.exit(2)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


if __name__ == "__main__":
    try:
        {"base": base, "evaluate": evaluate, "compare": compare, "comment": comment}[sys.argv[1]]()
    except (OSError, subprocess.TimeoutExpired) as error:
        _fail(f"{sys.argv[1]}: {error}")
