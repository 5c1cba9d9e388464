"""What is posted to a server, with turns before the question and without."""

from __future__ import annotations

import json

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Turn
from evaltrack.targets.http_body import Body
from evaltrack.targets.response_fields import InvalidResponseError

PLAIN = Question(id="q-1", question="Ça va?", domain="d")
TOLD = PLAIN.model_copy(
    update={"history": (Turn(role="user", content="Salut!"), Turn(role="assistant", content="Oui?"))}
)
TURNS = [{"role": "user", "content": "Salut!"}, {"role": "assistant", "content": "Oui?"}]
LAST = {"role": "user", "content": "Ça va?"}


def posted(body: str, question: Question) -> object:
    """What a server reads."""
    return json.loads(Body(body).content(question, 5))


def test_a_body_of_its_own_says_nothing_of_conversations_where_there_is_none() -> None:
    assert Body().content(PLAIN, 5) == '{"question": "Ça va?", "k": 5, "id": "q-1"}'.encode()
    assert posted("", TOLD) == {"question": "Ça va?", "k": 5, "id": "q-1", "history": TURNS}


@pytest.mark.parametrize(
    ("body", "plain", "told"),
    [
        ("{m: messages}", {"m": [LAST]}, {"m": [*TURNS, LAST]}),
        ("{q: question, h: history}", {"q": "Ça va?", "h": []}, {"q": "Ça va?", "h": TURNS}),
        ("{q: question, h: history[].content}", {"q": "Ça va?", "h": []}, {"q": "Ça va?", "h": ["Salut!", "Oui?"]}),
        ("{q: question, n: length(history)}", {"q": "Ça va?", "n": 0}, {"q": "Ça va?", "n": 2}),
    ],
)
def test_a_body_names_the_turns(body: str, plain: object, told: object) -> None:
    assert (posted(body, PLAIN), posted(body, TOLD)) == (plain, told)


@pytest.mark.parametrize(
    ("body", "takes"),
    [
        ("", True),
        ("{m: messages}", True),
        ("{h: history[].content}", True),
        ("{q: question}", False),
        ("{q: messages[-1].content}", False),
        ("{q: question, messages: k}", False),
    ],
)
def test_it_is_known_whether_the_turns_are_sent(body: str, takes: bool) -> None:
    assert Body(body).takes_history is takes


def test_a_body_that_gives_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="gives nothing; choose from question, k, id, history and messages"):
        Body("turns")


def test_a_body_that_fails_for_one_question_is_its_error() -> None:
    with pytest.raises(InvalidResponseError, match="body"):
        Body("{a: sum(history)}").content(TOLD, 5)
