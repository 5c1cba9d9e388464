"""Tokens in the form of each server and library."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.records import Usage
from evaltrack.targets.usage import read_parts, read_usage, unread_counts

FORMS: dict[str, tuple[dict[str, Any], tuple[int, int, int | None, int | None]]] = {
    "Chat Completions": (
        {
            **{"prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340},
            "prompt_tokens_details": {"cached_tokens": 256, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 32},
        },
        (300, 40, 256, 32),
    ),
    "DeepSeek": (
        {"prompt_tokens": 30, "completion_tokens": 4, "prompt_cache_hit_tokens": 20, "prompt_cache_miss_tokens": 10},
        (30, 4, 20, None),
    ),
    "Responses": (
        {
            **{"input_tokens": 300, "output_tokens": 40, "total_tokens": 340},
            "input_tokens_details": {"cached_tokens": 256},
            "output_tokens_details": {"reasoning_tokens": 32},
        },
        (300, 40, 256, 32),
    ),
    "Anthropic": (
        {
            **{"input_tokens": 50, "cache_creation_input_tokens": 148, "cache_read_input_tokens": 100},
            **{"output_tokens": 40, "service_tier": "standard", "server_tool_use": None},
        },
        (298, 40, 100, None),
    ),
    "Bedrock": (
        {
            **{"inputTokens": 50, "outputTokens": 40, "totalTokens": 90},
            **{"cacheReadInputTokens": 10, "cacheWriteInputTokens": 5},
        },
        (65, 40, 10, None),
    ),
    "Gemini": (
        {
            **{"promptTokenCount": 50, "candidatesTokenCount": 40, "thoughtsTokenCount": 30, "totalTokenCount": 127},
            **{"toolUsePromptTokenCount": 7, "cachedContentTokenCount": 20},
        },
        (57, 70, 20, 30),
    ),
    "Gemini's client": (
        {"prompt_token_count": 50, "candidates_token_count": 40, "total_token_count": 90},
        (50, 40, None, None),
    ),
    "LangChain": (
        {
            **{"input_tokens": 50, "output_tokens": 40, "total_tokens": 90},
            "input_token_details": {"cache_read": 20, "cache_creation": 5},
            "output_token_details": {"reasoning": 30},
        },
        (50, 40, 20, 30),
    ),
    "Ollama": ({"prompt_eval_count": 50, "eval_count": 40}, (50, 40, None, None)),
}


@pytest.mark.parametrize(("usage", "counts"), FORMS.values(), ids=FORMS)
def test_forms(usage: dict[str, Any], counts: tuple[int, int, int | None, int | None]) -> None:
    """Prompt, completion, cached and reasoning tokens, as the server means them."""
    read = Usage.model_validate(read_usage(usage))
    assert (read.prompt_tokens, read.completion_tokens, read.cached_tokens, read.reasoning_tokens) == counts


def test_a_count_that_no_form_knows_is_named() -> None:
    """Numbers that are not read are named; texts and totals are not."""
    usage = {"inputTokens": 5, "outputTokens": 4, "totalTokens": 9, "cost": 0.5, "region": "eu", "retries": 2}
    assert list(unread_counts(usage)) == ["cost", "retries"]


def test_of_no_known_form_nothing_is_read() -> None:
    """What is in no form is left to be refused with the names of the fields that are missing."""
    assert read_usage({"tokens": 5}) == {}
    assert read_usage(5) == 5
    assert read_parts({"tokens": 5}) == {}


@pytest.mark.parametrize("odd", [None, "many", True, -1, 1.5, [], {}])
def test_odd_counts_are_left_to_be_refused(odd: Any) -> None:
    """A count that is no number is not added to one that is, and is no error here."""
    read = read_usage({"input_tokens": odd, "output_tokens": 4, "cache_read_input_tokens": 3})
    assert isinstance(read, dict)
    assert read["completion_tokens"] == 4
