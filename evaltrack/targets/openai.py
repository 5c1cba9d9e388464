"""`openai:MODEL`: a model asked once, with the question alone: the naive baseline that retrieval has to beat.

It retrieves nothing, so only its answers can be judged.
"""

from __future__ import annotations

from evaltrack.errors import UsageError
from evaltrack.llm import LLM, has_server
from evaltrack.llm.client import MAX_CONCURRENCY
from evaltrack.records import Question, Response
from evaltrack.targets import no_more_settings

SYSTEM = "Answer the question in a few sentences. If you do not know the answer, say that you do not know."


def open_openai(place: str, settings: dict[str, str]) -> OpenAITarget:
    """The model called `place`. Settings: `system` (the system message), `temperature`.

    Raises:
        UsageError: neither key nor base URL is set, or a setting is wrong.
    """
    system, temperature = settings.pop("system", SYSTEM), settings.pop("temperature", "")
    no_more_settings("openai", settings, "system, temperature")
    if not has_server():
        raise UsageError(f"openai target `{place}`: set OPENAI_API_KEY or OPENAI_BASE_URL first")
    try:
        warmth = float(temperature) if temperature else None
    except ValueError:
        raise UsageError(f"openai target `{place}`: temperature is `{temperature}`; write a number") from None
    return OpenAITarget(place, system, warmth)


class OpenAITarget:
    """Asks the model; reports its usage."""

    def __init__(self, model: str, system: str = SYSTEM, temperature: float | None = None) -> None:
        self.model = model
        self._system = system
        self._llm = LLM(model, temperature=temperature, concurrency=MAX_CONCURRENCY)

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """The model's answer; it has no sources, so that retrieval is not measured."""
        messages = [{"role": "system", "content": self._system}, {"role": "user", "content": question.question}]
        answer = await self._llm.ask(messages)
        return Response(answer=answer.text, usage=answer.usage)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()
