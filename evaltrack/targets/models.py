"""Runs a model of MLflow in separate processes, as the target `models:/NAME@ALIAS`, `models:/NAME/1` or `runs:/…`.

Its signature decides the call: a ResponsesAgent is called with `input`, a ChatModel or ChatAgent with `messages`, any
other pyfunc with the column of the question (and `k` or `top_k`), or with the question alone. The output may be a text,
an object with the fields of a response, a chat completion, messages or output items; `sources` may be in
`custom_outputs`. An alias is resolved once: that version is evaluated, and is the model of the run.

| setting | meaning |
| --- | --- |
| `input` | the column of the question, if it is ambiguous |
| `answer`, `sources`, `chunk_id` … | JMESPath of the field in the output |
| `workers`, `memory` | number of processes, and memory limit of each |
| `store` | the MLflow store with the model; default: the run's |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Response, Target
from evaltrack.records.response import TraceHome
from evaltrack.targets import checked_settings
from evaltrack.targets.failures import InvalidResponseError, refuse_error
from evaltrack.targets.libraries import chat_fields
from evaltrack.targets.python import FunctionTarget, ProcessSettings, ProcessTarget, function_service
from evaltrack.targets.responses import FIELDS, MAPPED, as_response, plain_item, take_mapping
from evaltrack.targets.worker_pool import Service
from evaltrack.tracking.registry import ModelForm, link_model, loaded_model, model_form
from evaltrack.tracking.store import Store, connect


class ModelSettings(ProcessSettings):
    """The settings of a model."""

    input: str = ""


def open_model(uri: str, settings: dict[str, str]) -> Target:
    """Return a model, loaded in its processes, whose signature was checked.

    Raises:
        UsageError: there is no such model, it takes other input than a question, cannot be loaded, or a setting is
            wrong.
        TrackingError: the store does not answer.
    """
    is_mapped = not settings.keys().isdisjoint({"answer", "sources", "error"})
    mapping = {name: settings.pop(name) for name in MAPPED if is_mapped and name in settings}
    take_mapping("model", dict(mapping))
    given = checked_settings("model", ModelSettings, settings, MAPPED)
    if not uri.partition(":")[2].startswith("/"):
        raise UsageError(f"model `{uri}`: write models:/NAME@ALIAS, models:/NAME/VERSION or runs:/RUN/NAME")
    store = connect(given.store or None)
    form = model_form(store, uri, given.input)
    place = json.dumps({"store": store.uri, "form": asdict(form), "mapping": mapping})
    return ModelTarget(place, f"model `{uri}`", given, form, store)


class ModelTarget(ProcessTarget):
    """A model of MLflow in separate processes."""

    files: Mapping[str, str] = {}
    """None: the model was logged with its code."""

    def __init__(self, place: str, what: str, given: ModelSettings, form: ModelForm, store: Store) -> None:
        opener = "evaltrack.targets.models:serving"
        super().__init__(opener, place, what, workers=given.workers, memory=given.memory)
        self.form, self._store = form, store

    @property
    def model(self) -> str | None:
        """The model's name and version."""
        return self.form.name

    @property
    def takes_history(self) -> bool:
        """True if the model takes messages."""
        return self.form.form in ("chat", "responses")

    def link_to(self, home: TraceHome) -> str | None:
        """Name the model as an input of a run in its store."""
        is_here = home.store == self._store.uri and self.form.model_id
        return link_model(self._store, home.run_id, self.form.model_id) if is_here else None


def serving(place: str) -> Service:
    """Return the service of a child process for the model.

    Raises:
        UsageError: it cannot be loaded.
    """
    order = json.loads(place)
    predict = loaded_model(order["store"], ModelForm(**order["form"]))
    read = take_mapping("model", order["mapping"]) if order["mapping"] else response_of

    def ask(question: str, k: int, messages: list[dict[str, str]]) -> Response:
        output = predict(question, k, messages)
        try:
            content = json.dumps(output, allow_nan=False, default=plain_item)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidResponseError(f"cannot be written as JSON: {error}") from None
        return read(json.loads(content))

    return function_service(FunctionTarget(ask, own_loop=False))


def response_of(output: Any) -> Response:
    """Return a model's output as a response.

    Raises:
        FailedElsewhereError: it has an `error`.
        InvalidResponseError: it is no response.
    """
    refuse_error(output)
    if not isinstance(output, Mapping) or not output.keys() & {"choices", "output", "messages"}:
        return as_response(output)
    extra = output.get("custom_outputs")
    own = {name: extra[name] for name in FIELDS if name in extra} if isinstance(extra, Mapping) else {}
    return as_response({name: value for name, value in (chat_fields(output) | own).items() if value is not None})
