"""Asks a model once, without sources, as the target `openai:MODEL` or `endpoints:/NAME`: a baseline for retrieval.

It retrieves nothing, so only its answers can be judged. Under the reasoning rubric it is the naive single-shot baseline
for the aims: no instruction asks it to reason.

The messages are the turns before the question, if any, and the question as the user's last message. A leading system
turn replaces the target's own system message. The protocol accepts a tool's message only after the call that it
answers, which a golden line does not hold: it is sent as the user's, marked as a tool result.

`endpoints:/NAME` asks an endpoint of an MLflow server's AI gateway in the same way. The server is the run's, or the one
that the setting `store` names. The server holds the keys of the providers, so none is needed here. MLflow's own
variables hold the login.
"""

from __future__ import annotations

from pydantic import Field

from evaltrack.errors import Guide, UsageError
from evaltrack.judges.client import LLM, MAX_CONCURRENCY
from evaltrack.judges.server import NO_KEY, ModelServer, has_server
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Question, Response, Target
from evaltrack.targets import TargetSettings, checked_settings

SYSTEM = "Answer the question in a few sentences. If you do not know the answer, say that you do not know."
HOTTEST = 2.0
TOOL_RESULT = "Tool result:\n"
"""Prefix of a tool's turn, which is sent as the user's."""


class Sampling(TargetSettings):
    """The settings of a model."""

    system: str = SYSTEM
    temperature: float | None = Field(
        None, ge=0, le=HOTTEST, allow_inf_nan=False, description=f"a number from 0 to {HOTTEST:g}"
    )
    max_completion_tokens: int | None = Field(None, gt=0, description="a whole number above 0")


def open_openai(place: str, settings: dict[str, str]) -> OpenAITarget:
    """Return the model called `place`. Settings: `system` (the system message), `temperature`, `max_completion_tokens`.

    Raises:
        UsageError: neither key nor base URL is set, or a setting is wrong.
    """
    sampling = checked_settings("openai", Sampling, settings)
    if not has_server():
        raise UsageError(f"openai target `{place}`: set OPENAI_API_KEY or OPENAI_BASE_URL first", guide=Guide.MODEL)
    return OpenAITarget(place, sampling)


def open_endpoint(place: str, settings: dict[str, str]) -> OpenAITarget:
    """Return the endpoint called `place`. Settings: those of `openai:`, and `store`.

    Raises:
        UsageError: the store is no server, or a setting is wrong.
        TrackingError: the server does not answer.
    """
    name, store = place.removeprefix("/"), settings.pop("store", "")
    if not name or "/" in name:
        raise UsageError(f"target `endpoints:{shown_text(place)}`: write endpoints:/NAME")
    sampling = checked_settings("openai", Sampling, settings, ["store"])
    from evaltrack.tracking.server import open_gateway

    gateway = open_gateway(store or None)
    variables = "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"
    server = ModelServer(gateway.address, NO_KEY, variables, "the endpoints of the server", gateway.authorization)
    return OpenAITarget(name, sampling, server)


class OpenAITarget(Target):
    """Asks the model and reports its usage."""

    model: str | None = None
    takes_history: bool = True

    def __init__(self, model: str, sampling: Sampling, server: ModelServer | None = None) -> None:
        self.model, self._system = model, sampling.system
        self._llm = LLM(
            model,
            temperature=sampling.temperature,
            max_completion_tokens=sampling.max_completion_tokens,
            concurrency=MAX_CONCURRENCY,
            server=server,
        )

    @property
    def notes(self) -> list[str]:
        """The settings that the server refused and that were left out."""
        return self._llm.notes

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """Return the model's answer; without sources retrieval is not measured.

        Raises:
            AnswerError: the model gave no answer.
        """
        messages = [
            {"role": "user", "content": TOOL_RESULT + each["content"]} if each["role"] == "tool" else each
            for each in question.messages
        ]
        if messages[0]["role"] != "system":
            messages.insert(0, {"role": "system", "content": self._system})
        answer = await self._llm.ask(messages)
        return Response(answer=answer.text, usage=answer.usage)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._llm.aclose()
