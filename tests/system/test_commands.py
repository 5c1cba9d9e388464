"""Command lines of POSIX and of Windows."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.system.processes import quoted, split_command


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_what_is_quoted_is_split_again(words: list[str]) -> None:
    line = " ".join(map(quoted, words))
    assert split_command(line) == shlex.split(line) == words


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (r"C:\tools\ask.exe {question} --k {k}", [r"C:\tools\ask.exe", "{question}", "--k", "{k}"]),
        (r'"C:\Program Files\ask.exe" "{question}"', [r"C:\Program Files\ask.exe", "{question}"]),
        (r"python app\ask.py --out=D:\x\ '{id}'", ["python", r"app\ask.py", "--out=D:\\x\\", "{id}"]),
    ],
)
def test_a_backslash_of_windows_is_one(line: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sep", "\\")
    assert split_command(line) == words


def test_a_backslash_of_posix_quotes() -> None:
    assert split_command(r"ask a\ b # c") == ["ask", "a b", "#", "c"]


def test_a_quotation_that_is_open_is_an_error() -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        split_command('ask "a')


def test_a_word_for_the_shell_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quoted("my set.jsonl") == "'my set.jsonl'"
    monkeypatch.setattr("os.sep", "\\")
    assert quoted("my set.jsonl") == '"my set.jsonl"'
