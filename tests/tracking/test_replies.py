"""What an error of MLflow's client says about the reply that came."""

from __future__ import annotations

import json
import sys

import pytest
from mlflow.exceptions import MlflowException
from sqlalchemy.exc import DBAPIError

from evaltrack.errors import TrackingError
from evaltrack.tracking.patience import LOGIN, UNICODE, broke_off, is_web_page, no_reply, reason
from evaltrack.tracking.store import own_words, tracking_errors

NO_JSON = "the response body was not in a valid JSON format. Response body: '{}'"


def undecodable(text: str) -> json.JSONDecodeError:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(text)
    return caught.value


@pytest.mark.parametrize(
    "error",
    [
        MlflowException(NO_JSON.format("<!DOCTYPE html>\n<html>sign in</html>")),
        MlflowException("failed with error code 403 != 200. Response body: '<html><body>no</body></html>'"),
        undecodable("\n<html>sign in</html>"),
    ],
)
def test_a_page_for_people_is_recognised(error: Exception) -> None:
    assert is_web_page(error)
    assert not broke_off(error)
    assert reason(error) == LOGIN


@pytest.mark.parametrize("error", [MlflowException(NO_JSON.format('{"run": {"info')), undecodable('{"run": {"info')])
def test_half_a_reply_is_recognised(error: Exception) -> None:
    assert broke_off(error)
    assert not is_web_page(error)


def test_a_connection_to_a_database_that_ended_is_recognised() -> None:
    """As a half reply: what was asked may have been done. A database that refuses is none."""
    ended = MlflowException("terminating connection")
    ended.__cause__ = DBAPIError("insert", {}, Exception(), connection_invalidated=True)
    assert broke_off(ended)
    refused = MlflowException("duplicate key")
    refused.__cause__ = DBAPIError("insert", {}, Exception())
    assert (broke_off(refused), no_reply(refused)) == (False, False)


def test_a_reply_is_understood_without_sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mlflow-skinny` comes without it."""
    monkeypatch.setitem(sys.modules, "sqlalchemy.exc", None)
    refused = MlflowException("duplicate key")
    assert (broke_off(refused), no_reply(refused)) == (False, False)


def test_what_mlflow_says_is_no_page() -> None:
    error = MlflowException("Invalid value '<html>' for parameter 'name'")
    assert (is_web_page(error), broke_off(error)) == (False, False)
    assert reason(error) == "Invalid value '<html>' for parameter 'name'"


def test_a_database_that_lacks_characters_is_said_how_to_cure() -> None:
    assert reason(MlflowException("(1366, \"Incorrect string value: '\\xF0' for column `value`\")")) == UNICODE


def test_what_a_kind_of_artifact_store_raises_is_an_error_of_tracking() -> None:
    said = "logging x failed: the artifact store says: the bucket is gone"
    with pytest.raises(TrackingError, match=said), tracking_errors("logging x"), own_words():
        raise RuntimeError("the bucket is gone")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One sentence.", "One sentence."),
        ("w" * 400, "w" * 400),
        ("A place is wrong. " * 30, "A place is wrong. " * 22 + "…"),
        (f"{'A long one ' * 22}(e.g. this). {'and so on ' * 40}", f"{'A long one ' * 22}(e.g. this). …"),
        (f"Short. {'word ' * 100}", f"Short. {'word ' * 78}".strip() + "…"),
        ("w" * 500, "w" * 398 + "…"),
        (f"In short: {'w' * 500}", f"In short: {'w' * 388}…"),
    ],
)
def test_a_long_text_ends_with_a_sentence_or_a_word(text: str, shown: str) -> None:
    assert reason(MlflowException(text)) == shown
    assert len(shown) <= 400
    with pytest.raises(TrackingError) as caught, tracking_errors("finding the run"):
        raise MlflowException(text)
    assert str(caught.value) == f"MLflow: finding the run failed: {shown}"
