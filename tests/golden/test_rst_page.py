"""reStructuredText: what is a heading, what is text, and what is never done."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.golden.corpus.chunkers import Page, Section
from evaltrack.golden.corpus.rst_page import read_rst


def sections(text: str) -> list[tuple[str, str]]:
    return [(section.heading, section.text) for section in read_rst(text, "name").sections]


def test_page() -> None:
    """The first heading is the title, those of the next level start sections, deeper ones are text."""
    text = "=====\nTitle\n=====\n\nLead.\n\nOne\n---\na\n\nDeep\n~~~~\n\nb\n\n Two\n----\nc\n"
    text = text.replace(" Two", "Two")
    assert read_rst(text, "name") == Page(
        "Title", (Section("", "Lead."), Section("One", "a\n\nDeep\n~~~~\n\nb"), Section("Two", "c"))
    )


def test_several_headings_of_the_first_level() -> None:
    assert read_rst("A\n=\nx\n\nB\n=\ny\n\nC\n-\nz\n", "name") == Page(
        "A", (Section("", "x"), Section("B", "y"), Section("C", "z"))
    )
    assert read_rst("===\nA\n===\n===\nB\n===\ny", "name") == Page("A", (Section("", ""), Section("B", "y")))


@pytest.mark.parametrize(("text", "body"), [("", ""), ("\n\nonly text\n", "only text"), ("=\nA", "=\nA")])
def test_pages_without_headings(text: str, body: str) -> None:
    """Are called like their file."""
    assert read_rst(text, "name") == Page("name", (Section("", body),))


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Using ``attrs``", "Using attrs"),
        (":func:`open` and :py:class:`Path`", "open and Path"),
        (":ref:`The guide <guide>`", "The guide"),
        ("`Site <https://example.com>`_", "Site"),
        ("a < b, `c", "a < b, `c"),
        ("*Stars* stay", "*Stars* stay"),
    ],
)
def test_markup_of_headings(heading: str, words: str) -> None:
    """Roles, code and links in a heading leave their words."""
    (_, (found, _)) = sections(f"T\n=\n\n{heading}\n{'-' * 60}\ntext")
    assert found == words


def test_what_stands_in_directives_is_text_as_it_is_written() -> None:
    code = ".. code-block:: python\n\n   Head\n   ====\n\n::\n\n   Head\n   ====\n\nAs in::\n\n    Head\n    ===="
    body = f".. function:: f(x)\n\n   Adds :math:`x`.\n\n{code}"
    assert sections(f"T\n=\n{body}\n\nS\n-\n.. note::\n\n   Head\n   ----\n\n   x") == [
        ("", body),
        ("S", ".. note::\n\n   Head\n   ----\n\n   x"),
    ]


def test_labels_are_left_out() -> None:
    assert sections(".. _top:\n\nT\n=\n.. _a b:\n\nx\n\n.. _`c: d`:\n.. _site: https://x.example\n\nS\n-\ny") == [
        ("", "x\n\n\n.. _site: https://x.example"),
        ("S", "y"),
    ]


def directives(secret: Path) -> Iterator[str]:
    """Ways to read a file, to run code or to pass markup through."""
    files = (f":file: {secret}", f":url: file://{secret}")
    yield from (f".. {name}:: {secret}" for name in ("include", "literalinclude", "image", "|x| image"))
    yield from (f".. raw:: html\n   {option}" for option in files)
    yield from (f".. csv-table:: t\n   {option}" for option in files)
    yield f".. figure:: {secret}\n   :figwidth: image"
    yield f".. include:: {secret}\n   :parser: loaded_by_a_page"
    yield f"- - .. include:: {secret}\n       :parser: loaded_by_a_page"
    yield f".. |long\n   name| include:: {secret}\n   :parser: loaded_by_a_page"
    yield ".. role:: raw-html(raw)\n   :format: html\n\n:raw-html:`<b>`"
    yield ".. default-role:: nonsense\n\n`x`"
    yield ".. parsed-literal::\n   :class: x\n\n   x"


def test_no_file_is_read_and_nothing_is_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (secret := tmp_path / "secret.rst").write_text("Secret\n------\nsecret text")
    (tmp_path / "loaded_by_a_page.py").write_text("class Parser: ...")
    monkeypatch.syspath_prepend(str(tmp_path))
    for directive in directives(secret):
        assert sections(f"T\n=\n\n{directive}\n\nS\n-\nx") == [("", directive), ("S", "x")]
    assert "loaded_by_a_page" not in sys.modules
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("T\n:::::\n\nS\n;;;;;\nx", "S"),
        ("T\n=\n\nstd::map\n--------\nx", "std::map"),
        ("T\n=\n\nIf::\n----\nx", "If::"),
    ],
)
def test_colons_in_headings(text: str, heading: str) -> None:
    assert sections(text)[1:] == [(heading, "x")]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_separators_are_text(sign: str) -> None:
    found = sections(f"T\n=\none{sign}two\n\nS\n-\nthree\n\nR\n-\nfour")
    assert [(heading, text.split()) for heading, text in found] == [
        ("", ["one", "two"]),
        ("S", ["three"]),
        ("R", ["four"]),
    ]


def test_pages_with_errors_are_read() -> None:
    text = "T\n=\n\n+---+\n| a |\n\nS\n-\n*open `quote\n\n.. nonsense::\n\nD\n~\n\nS2\n==\nx"
    assert [heading for heading, _ in sections(text)] == ["", "S", "S2"]


def test_long_lines() -> None:
    """A table or data in one line is no reason either."""
    assert sections("T\n=\n\n" + "x*" * 20_000 + "\n\nS\n-\ny")[1] == ("S", "y")
