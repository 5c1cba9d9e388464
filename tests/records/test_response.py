"""Tokens as servers and libraries report them."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.records import Usage
from evaltrack.records.response import read_usage
from tests.files import data

FORMS: dict[str, tuple[dict[str, Any], tuple[int, int, int | None, int | None]]] = data("targets.json")["usage"]


@pytest.mark.parametrize(("usage", "counts"), FORMS.values(), ids=FORMS)
def test_forms(usage: dict[str, Any], counts: tuple[int, int, int | None, int | None]) -> None:
    read = Usage.model_validate(read_usage(usage))
    assert (read.prompt_tokens, read.completion_tokens, read.cached_tokens, read.reasoning_tokens) == tuple(counts)


def test_of_no_known_form_nothing_is_read() -> None:
    assert read_usage({"tokens": 5}) == {}
    assert read_usage(5) == 5


@pytest.mark.parametrize("odd", [None, "many", True, -1, 1.5, [], {}])
def test_odd_counts_are_left_to_be_refused(odd: Any) -> None:
    read = read_usage({"input_tokens": odd, "output_tokens": 4, "cache_read_input_tokens": 3})
    assert isinstance(read, dict)
    assert read["completion_tokens"] == 4
