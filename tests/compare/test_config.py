"""The settings of a comparison stand in one record, from which options and keyword arguments are made."""

from __future__ import annotations

from inspect import signature
from typing import Any, get_type_hints

import pytest

from evaltrack import compare_runs
from evaltrack.cli.compare import compare
from evaltrack.compare.config import ComparisonConfig, ComparisonOptions
from evaltrack.errors import UsageError


def test_the_keyword_arguments_are_the_settings() -> None:
    """Editors complete the settings of `compare_runs` from a typed dictionary, which names each of them."""
    assert [*get_type_hints(ComparisonOptions)] == [*ComparisonConfig.model_fields]
    named = [each for each in signature(compare_runs).parameters.values() if each.kind is not each.VAR_KEYWORD]
    assert len(named) <= 8


def test_every_setting_is_an_option() -> None:
    """Each setting is an option of `evaltrack compare`, with the default and the help of the record."""
    options = {option.name: option for option in compare.params}
    for name, field in ComparisonConfig.model_fields.items():
        option: Any = options[name]
        assert option.help == field.description
        assert option.default == (list(field.default) if option.multiple else field.default)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("allow_flips", -1, "allow_flips is -1; write a whole number of at least 0"),
        ("min_coverage", 1.5, "min_coverage is 1.5; write a number from 0 to 1"),
        ("gate", "strict", "gate is strict; write auto, seed or evidence"),
        ("max_reruns", -1, "max_reruns is -1; write a number of at least 0"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused(name: str, value: object, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        ComparisonConfig.of(**{name: value})
    assert str(refused.value) == message


def test_one_text_is_a_list_of_one() -> None:
    """Where several are taken, one may stand alone; a set of parts has one order."""
    made = ComparisonConfig.of(max_drop="mrr=5%", ignore={"k", "judge"})
    assert (made.max_drop, made.ignore) == (("mrr=5%",), ("judge", "k"))
