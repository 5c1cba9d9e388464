"""What came back from a server of MLflow, or of its database: nothing, half a reply, a web page, or its own words."""

from __future__ import annotations

import json
import re

from evaltrack.privacy.addresses import shown_text

LOGIN = (
    "it answers with a web page, not with MLflow's API: is a login, or another service, in front of it? Set "
    "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or another MLFLOW_TRACKING_URI"
)
NOT_UNICODE = "Incorrect string value"
UNICODE = (
    "the database does not take all characters; its tables need utf8mb4 (of each: ALTER TABLE ... CONVERT TO CHARACTER "
    "SET utf8mb4; of a new database: CREATE DATABASE ... CHARACTER SET utf8mb4)"
)
"""What MySQL says of a character that its tables cannot hold, and the message for it."""

SHOWN = 400
"""Characters of an error's text that are shown."""

SENTENCE_END = re.compile(r"(?<!e\.g)(?<!i\.e)[.!?](?= )")
"""The end of a sentence, behind which another begins."""

NO_JSON = "not in a valid JSON format"


def broke_off(error: BaseException) -> bool:
    """Whether a reply ended half-way: the server may have done what was asked of it."""
    from requests.exceptions import ChunkedEncodingError, ContentDecodingError

    behind = _behind(error)
    if isinstance(behind, ChunkedEncodingError | ContentDecodingError):
        return True
    if getattr(behind, "connection_invalidated", False):
        return True
    return _body(error).lstrip().startswith("{") and (NO_JSON in str(error) or isinstance(error, json.JSONDecodeError))


def no_reply(error: BaseException) -> bool:
    """Whether no reply came at all, or only that the server is busy or gone."""
    from requests.exceptions import ConnectionError as NoConnectionError
    from requests.exceptions import InvalidProxyURL, RetryError, SSLError, Timeout

    behind = _behind(error)
    if hasattr(behind, "connection_invalidated"):  # an error of SQLAlchemy, which mlflow-skinny has not
        return getattr(error, "error_code", "") == "TEMPORARILY_UNAVAILABLE"
    return isinstance(behind, NoConnectionError | RetryError | Timeout) and not isinstance(
        behind, SSLError | InvalidProxyURL
    )


def _behind(error: BaseException) -> BaseException | None:
    """The error of the HTTP client or of the database, which MLflow puts into words of its own."""
    return error.__cause__ or error.__context__


def _body(error: BaseException) -> str:
    """The text that came back in place of what MLflow expects; empty where the error holds none."""
    if isinstance(error, json.JSONDecodeError):
        return error.doc
    return str(error).partition("Response body: '")[2]


def is_web_page(error: BaseException) -> bool:
    """Whether a page for people came back."""
    return re.match(r"\s*<(!doctype\s+html|html|head|body)\b", _body(error)[:1000], re.IGNORECASE) is not None


def reason(error: BaseException) -> str:
    """The first line of an error, which in MLflow and SQLAlchemy is the part for people; URLs as they may be shown."""
    if is_web_page(error):
        return LOGIN
    text = str(error).strip() or type(error).__name__
    if NOT_UNICODE in text[:10_000]:
        return UNICODE
    return _shortened(shown_text(" ".join(text.splitlines()[0][:10_000].split())))


def _shortened(text: str) -> str:
    """At most `SHOWN` characters: whole sentences where they are half of that, else whole words, and an ellipsis."""
    if len(text) <= SHOWN:
        return text
    head = text[: SHOWN - 2]
    ends = [match.end() for match in SENTENCE_END.finditer(text, 0, SHOWN) if SHOWN // 2 <= match.end() <= len(head)]
    if ends:
        return f"{head[: ends[-1]]} …"
    words = head.rpartition(" ")[0]
    return f"{words if len(words) >= SHOWN // 2 else head}…"
