"""The form in which titles compare."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.records.passage import title_key

repeatable = settings(deadline=None, derandomize=True)


@pytest.mark.parametrize(
    ("title", "key"),
    [
        ("Paris", "paris"),
        ("World_War_II", "world war ii"),
        ("  Paris \n", "paris"),
        ("_Paris_", "paris"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("Caf\N{LATIN SMALL LETTER E WITH ACUTE}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("CAFE\N{COMBINING ACUTE ACCENT}", "caf\N{LATIN SMALL LETTER E WITH ACUTE}"),
        ("\N{LATIN SMALL LETTER J WITH CARON}", "\N{LATIN SMALL LETTER J WITH CARON}"),
        ("\N{ANGSTROM SIGN}", "\N{LATIN SMALL LETTER A WITH RING ABOVE}"),
        ("two  words", "two  words"),
        ("C#: a/b", "c#: a/b"),
        ("", ""),
    ],
)
def test_titles_compare_in_one_form(title: str, key: str) -> None:
    """A title's key is NFC, case-folded, with spaces for underscores and none around it."""
    assert title_key(title) == key


@repeatable
@given(st.text())
def test_the_key_of_a_key_is_itself(title: str) -> None:
    """Bringing a title into its form twice changes nothing more."""
    assert title_key(title_key(title)) == title_key(title)
