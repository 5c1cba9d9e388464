"""`openai:MODEL` asked of a real HTTP server that speaks the protocol."""

from __future__ import annotations

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Usage
from evaltrack.targets.openai import SYSTEM, open_openai
from tests.actors import asked
from tests.conftest import Serve
from tests.openai_behaviours import Reply
from tests.openai_behaviours import Usage as ServerUsage

QUESTION = Question(id="1", question="Do cats purr?", domain="d", expected_chunks=("a",))


def ask(settings: dict[str, str], question: Question = QUESTION) -> Response:
    target = open_openai("tiny", settings)
    assert target.takes_history
    return asked(target, question, close=True)


def test_the_model_is_asked_once_and_reports_its_usage(serve: Serve) -> None:
    server = serve(Reply("They do.", usage=ServerUsage(12, 3, cached=8, reasoning=1)))
    response = ask({})
    usage = Usage(prompt_tokens=12, completion_tokens=3, cached_tokens=8, reasoning_tokens=1)
    assert response == Response(answer="They do.", usage=usage)
    assert response.sources is None
    (body,) = server.bodies
    assert body["model"] == "tiny"
    assert [message["content"] for message in body["messages"]] == [SYSTEM, "Do cats purr?"]
    assert "temperature" not in body


def test_without_a_key_the_message_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="set OPENAI_API_KEY or OPENAI_BASE_URL first"):
        open_openai("tiny", {})


# Conversations

TURNS = [{"role": "user", "content": "Do dogs?"}, {"role": "assistant", "content": "They do not."}]


SYSTEM_TURN, OWN_TURN = ({"role": "system", "content": text} for text in (SYSTEM, "You know cats."))
TOOL = [{"role": "tool", "content": '{"purr": 0}'}, {"role": "user", "content": 'Tool result:\n{"purr": 0}'}]


@pytest.mark.parametrize(
    ("history", "before"),
    [
        (TURNS, [SYSTEM_TURN, *TURNS]),
        ([OWN_TURN, *TURNS], [OWN_TURN, *TURNS]),
        ([TURNS[0], TOOL[0]], [SYSTEM_TURN, TURNS[0], TOOL[1]]),
    ],
    ids=["turns", "own system turn", "tool turn"],
)
def test_the_turns_before_are_sent(history: list[dict[str, str]], before: list[dict[str, str]], serve: Serve) -> None:
    asked = Question.model_validate(QUESTION.model_dump() | {"history": history})
    server = serve("They do.")
    ask({"temperature": "0.7", "max_completion_tokens": "50"}, asked)
    (body,) = server.bodies
    assert body["messages"] == [*before, {"role": "user", "content": "Do cats purr?"}]
    assert (body["temperature"], body["max_completion_tokens"]) == (0.7, 50)
