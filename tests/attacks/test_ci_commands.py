"""Text from golden sets, targets, judges and settings that a CI runner would take as a command of the job.

The parsers below follow the grammars of GitHub's runner and of Azure's agent, which read each line of a log: a command
of the first form begins anywhere in it, one of the second form after the blanks at its start, and only names that the
runner knows are commands. Both look for their prefix by the rules of a language, where characters without weight count
for nothing, and then cut it off by its length.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evaltrack.report.escaping import BREAK, one_line
from tests.conftest import evaltrack
from tests.files import data, put
from tests.judging import cli
from tests.test_hostile_text import PLACES, RENDERINGS, rendered, seen

GITHUB = {"add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group", "notice"}
GITHUB |= {"remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning"}
AZURE = {"artifact", "build", "codecoverage", "plugininternal", "release", "results", "task", "telemetry"}

WEIGHTLESS = "[\u00ad\u034f\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]*"


def prefixed(line: str, prefix: str) -> str | None:
    match = re.search(WEIGHTLESS.join(map(re.escape, prefix)), line)
    return None if match is None else line[match.start() + len(prefix) :]


def github_command(line: str) -> str | None:
    start = line.lstrip()
    if re.match(f"{WEIGHTLESS}:{WEIGHTLESS}:", start) and (end := start.find("::", 2)) >= 0:
        name = start[2:end].partition(" ")[0].lower()
        if name in GITHUB:
            return name
    rest = prefixed(line, "##[")
    if rest is None or "]" not in rest:
        return None
    name = rest.partition("]")[0].partition(" ")[0].lower()
    return name if name in GITHUB else None


def azure_command(line: str) -> str | None:
    rest = prefixed(line, "##vso[")
    if rest is None or "]" not in rest:
        return None
    parts = [part for part in rest.partition("]")[0].partition(" ")[0].split(".") if part]
    return ".".join(parts) if len(parts) == 2 and parts[0].lower() in AZURE else None


def commands(text: str) -> list[str]:
    lines = re.split("\r\n|\r|\n", text)
    return [name for line in lines for name in (github_command(line), azure_command(line)) if name]


ORDERS: list[str] = data("ci_orders.json")
RUNNERS = (ORDERS[0], ORDERS[4], ORDERS[9])
"""One order each of GitHub's two forms and of Azure's."""

PRINTED = [name for name in RENDERINGS if re.search("terminal|JSON|Markdown|JUnit|annotations", name)]


def test_the_parsers_see_what_the_runners_see() -> None:
    assert [order for order in ORDERS if not commands(order)] == [
        "##\u200b[error]pwned",
        "#\u00ad#[error]pwned",
        "##\ufe0f[error]pwned",
    ]
    assert commands("see ##[Error x=y]z\r::ERROR title=x::y\n a ##vso[task.logissue type=error]z") == [
        "error",
        "error",
        "task.logissue",
    ]
    assert not commands("## [error]x\n##[x]\n#[error]\na::error::b\n##vso[x]\n##vso[a.b]")


@pytest.mark.parametrize("rendering", PRINTED)
def test_no_rendering_holds_a_command(rendering: str) -> None:
    ours = commands(rendered(rendering, PLACES["question"], "?")) if rendering.endswith("annotations") else []
    for number, place in enumerate(sorted({*seen(rendering), "url"})):
        some = [*RUNNERS, ORDERS[number % len(ORDERS)]]
        for order in ORDERS if place in ("question", "url") else some:
            text = rendered(rendering, PLACES[place], order)
            assert sorted(commands(text)) == sorted(ours), (order, place)
            assert "##[" not in text, (order, place)
            assert "##vso" not in text, (order, place)


def test_data_and_texts_stay_what_they_were() -> None:
    for order in ("##[error]pwned", "\\##vso[task.debug]pwned"):
        for rendering in ("run, JSON", "comparison, JSON"):
            assert order in str(json.loads(rendered(rendering, PLACES["question"], order)))
    assert one_line("a ##[error]b", 12) == one_line(one_line("a ##[error]b", 12), 12) == f"a ##{BREAK}[error]b"


ORDER = "x\n::error::pwned"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        *((text, ("small.jsonl",)) for text in ('["##[error]pwned"]\nk = 1\n', '["x\\n::error::pwned"]\nk = 1\n')),
        ("[run]\n'##vso[task.debug]' = 1\n", ("small.jsonl",)),
        ("", ("small.jsonl", "##[error]pwned", ORDER)),
    ],
)
def test_an_error_quotes_no_command(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    settings: str,
    words: tuple[str],
) -> None:
    put(tmp_path / "evaltrack.toml", settings)
    monkeypatch.chdir(tmp_path)

    assert cli("run", *words) == 2

    printed = capsys.readouterr().err
    assert printed.startswith("Error: evaltrack.toml: ") if settings else "pwned" in printed
    assert commands(printed) == []


TEXTS = ("##[error]id", "::error::q", "##vso[task.debug]c", "##[group]d")
MORE = ("::error::id", "##[error]q", "a", "x ::error::d " + "y" * 12 + " ::error::d")
HOSTILE = [{"id": a, "question": b, "expected_chunks": [c], "domain": d} for a, b, c, d in (TEXTS, MORE)]


def written(folder: Path, name: str = "##[error]set") -> Path:
    put(folder / "answers.jsonl", [{"id": "::error::id", "answer": "##[error]a", "sources": ["##[error]s"]}])
    return put(folder / f"{name}.jsonl", HOSTILE)


def test_golden_sets_are_checked_without_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = written(tmp_path)
    assert cli("golden", "lint", path) == 0
    printed = capsys.readouterr()
    assert "domain ##" in printed.err
    assert commands(printed.out + printed.err) == []

    assert cli("golden", "lint", path, "--output", "json") == 0
    out = capsys.readouterr().out
    assert any("domain ##[group]d" in each["message"] for each in json.loads(out))
    assert commands(out) == []


def test_a_run_and_its_baseline_are_printed_without_commands(store_uri: str, tmp_path: Path) -> None:
    path, answers = written(tmp_path, "small"), "recorded:answers.jsonl"
    run = ("run", path, "-t", answers, "--run-name", "##[error]name", "--judge", "none")
    printed = [evaltrack(*run, "--output", form, cwd=tmp_path, env={"COLUMNS": "40"}) for form in ("table", "json")]
    printed.append(evaltrack("baseline", "set", "--force", "--reason", "##[error]why\n::error::why", cwd=tmp_path))
    printed += [evaltrack("baseline", "show", "--output", form, cwd=tmp_path) for form in ("table", "json")]

    assert [ended.returncode for ended in printed] == [0] * 5, printed[2].stderr
    assert "]why" in printed[3].stdout
    assert commands("".join(ended.stdout + "\n" + ended.stderr for ended in printed)) == []


TARGET = "def ask(question, k):\n    print('::add-mask::e')\n    print('see', '##[error]pwned')\n    return ['a']\n"


def test_what_a_target_prints_is_no_command(store_uri: str, tmp_path: Path) -> None:
    written(tmp_path)
    put(tmp_path / "app.py", TARGET)
    ended = evaltrack("run", "##[error]set.jsonl", "-t", "python:app:ask", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert "pwned" in ended.stderr
    assert commands(ended.stdout + ended.stderr) == []
