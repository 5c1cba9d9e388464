"""What is posted to a server.

It is ``{"question": …, "k": …, "id": …}``, with ``"history": [{"role": …, "content": …}, …]`` where there are turns
before the question; or what the setting `body` makes of these, a JMESPath expression such as ``{query: question, top_k:
k}``. A body may also name `messages`, the history and the question as the last message of the user: ``{model: 'my-rag',
messages: messages}``. One that names neither is sent the question alone.
"""

from __future__ import annotations

import json
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Question, Turn
from evaltrack.targets.mapping import ODD, Expression, compile_expression

ALONE = Question(id="1", question="q", domain="d")
WITH_HISTORY = ALONE.model_copy(update={"history": (Turn(role="user", content="before"),)})
"""Questions on which a body is tried."""


class Body:
    """Makes the body of a request; with the JMESPath expression `text` where there is one.

    Raises:
        UsageError: it is not JMESPath, or gives nothing.
    """

    def __init__(self, text: str = "") -> None:
        self._expression = compile_expression("http", "body", text) if text else None
        if self._expression is not None and _result(self._expression, ALONE) is None:
            names = "question, k, id, history and messages"
            raise UsageError(f"http target: body is `{text}`, which gives nothing; choose from {names}")

    @property
    def takes_history(self) -> bool:
        """Whether what it makes differs with the turns before the question."""
        one = self._expression
        return one is None or _result(one, ALONE) != _result(one, WITH_HISTORY)

    def content(self, question: Question, k: int) -> bytes:
        """The JSON to post.

        Raises:
            InvalidResponseError: the expression cannot be applied to this question.
        """
        fields = _fields(question, k)
        if self._expression is not None:
            body = self._expression.find(fields)
        else:
            body = {name: value for name, value in fields.items() if name != "messages" and value != []}
        return json.dumps(body, ensure_ascii=False).encode()


def _fields(question: Question, k: int) -> dict[str, Any]:
    """What a body may hold."""
    messages = question.messages
    asked = {"question": question.question, "k": k, "id": question.id}
    return asked | {"history": messages[:-1], "messages": messages}


def _result(expression: Expression, question: Question) -> Any:
    from jmespath.exceptions import JMESPathError

    try:
        return expression.search(_fields(question, 5))
    except (JMESPathError, *ODD):  # said when a question is asked
        return "?"
