"""Looks up models and prompts in MLflow, reads a model's interface from its signature, calls it, links it to a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.tracking.store import Store, is_missing, tracking_errors

if TYPE_CHECKING:
    from mlflow.models import ModelSignature


Form = Literal["responses", "chat", "columns", "text"]
"""The interface of a model: a ResponsesAgent, a ChatModel or ChatAgent, named columns, or a text alone."""

QUESTIONS = ("question", "query", "user_input", "input", "inputs", "prompt", "text", "content")
NUMBERS = ("k", "top_k")


@dataclass(frozen=True)
class ModelForm:
    """A model and its interface.

    Attributes:
        uri: Address of one version, which does not change with an alias.
        form: The interface.
        question: The column of the question, if it has columns.
        number: The column of k; empty if there is none.
        model_id: Id of MLflow's LoggedModel; empty if there is none.
        name: Name for people, with its version.
    """

    uri: str
    form: Form
    question: str = ""
    number: str = ""
    model_id: str = ""
    name: str = ""


def model_form(store: Store, uri: str, column: str = "") -> ModelForm:
    """Return a model's interface from its signature. `column` names the question's column if it is not obvious.

    Raises:
        UsageError: there is no such model, or its input is not a question.
        TrackingError: the store does not answer.
    """
    import mlflow

    what = f"model `{shown_text(uri)}`"
    mlflow.set_tracking_uri(store.uri)
    try:
        with tracking_errors(f"looking up {what}"):
            pinned, version = _pinned(store, uri)
            info = mlflow.models.get_model_info(pinned)
    except TrackingError as error:
        if is_missing(error):
            cure = "name models:/NAME@ALIAS, models:/NAME/VERSION or runs:/RUN/NAME"
            raise UsageError(f"{what}: {error}; {cure}") from None
        raise
    form, question, number = signature_form(info.signature, column, what)
    model_id = str(info.model_id or "")
    return ModelForm(pinned, form, question, number, model_id, f"{version}" or model_id or uri)


def link_model(store: Store, run_id: str, model_id: str) -> str | None:
    """Name a LoggedModel as an input of a run. Return a note if the store cannot, such as an older server."""
    from mlflow.entities import LoggedModelInput

    try:
        with tracking_errors("linking the model to the run"):
            store.client.log_inputs(run_id, models=[LoggedModelInput(model_id)])
    except TrackingError as error:
        return f"the model is not linked to the run: {error}"
    return None


def _pinned(store: Store, uri: str) -> tuple[str, str]:
    """Return the address of the version that an alias or `latest` names now, and its name for people."""
    name, at, alias = uri.removeprefix("models:/").partition("@")
    if uri.startswith("models:/") and at:
        version = store.client.get_model_version_by_alias(name, alias).version
        return f"models:/{name}/{version}", f"{name} version {version}"
    name, slash, version = name.partition("/")
    return uri, f"{name} version {version}" if uri.startswith("models:/") and slash else ""


def signature_form(signature: ModelSignature | None, column: str, what: str) -> tuple[Form, str, str]:
    """Return the interface of a model with this signature, and its columns for the question and for k.

    Raises:
        UsageError: its input is not a question. `what` is the start of the message.
    """
    specs = list(signature.inputs.inputs) if signature is not None and signature.inputs is not None else []
    names = [str(spec.name) for spec in specs if getattr(spec, "name", None)]
    if not names and len(specs) == 1:
        return "text", "", ""
    if not names:
        if column:
            return "columns", column, ""
        raise UsageError(f"{what}: has no signature; log it with one, or name its column of the question: `input=`")
    if column and column not in names:
        raise UsageError(f"{what}: `input=` is {column}; its columns are {', '.join(names)}")
    if not column and "messages" in names:
        return "chat", "", ""
    if not column and "input" in names and "string" not in _kind(specs[names.index("input")]):
        return "responses", "", ""
    texts = [str(spec.name) for spec in specs if getattr(spec, "name", None) and _kind(spec) == "string"]
    usual = next((each for each in QUESTIONS if each in texts), texts[0] if len(texts) == 1 else "")
    question, number = column or usual, next((each for each in NUMBERS if each in names), "")
    required = {str(spec.name) for spec in specs if getattr(spec, "required", True)}
    if not question or required - {question, number}:
        cure = "log the others as optional (required=False)" if question else "name that of the question with `input=`"
        raise UsageError(f"{what}: takes {', '.join(names)}, and only a question and k are passed; {cure}")
    return "columns", question, number


def _kind(spec: Any) -> str:
    kind = spec.type
    return str(getattr(kind, "name", kind)).lower()


def loaded_model(store_uri: str, form: ModelForm) -> Callable[[str, int, Sequence[Mapping[str, str]]], Any]:
    """Return a function from a question, k and its messages to the model's output, as JSON values.

    Raises:
        UsageError: it cannot be loaded.
    """
    import mlflow

    mlflow.set_tracking_uri(store_uri)
    try:
        model = mlflow.pyfunc.load_model(form.uri)
    except Exception as error:
        what = f"model `{shown_text(form.uri)}` cannot be loaded"
        raise UsageError(f"{what}: {type(error).__name__}: {error}") from error

    def call(question: str, k: int, messages: Sequence[Mapping[str, str]]) -> Any:
        return plain_output(model.predict(_model_input(form, question, k, messages)))

    return call


def _model_input(form: ModelForm, question: str, k: int, messages: Sequence[Mapping[str, str]]) -> Any:
    if form.form == "responses":
        return {"input": [dict(each) for each in messages]}
    if form.form == "chat":
        return {"messages": [dict(each) for each in messages]}
    if form.form == "text":
        return [question]
    import pandas as pd

    return pd.DataFrame([{form.question: question, **({form.number: k} if form.number else {})}])


def plain_output(value: Any) -> Any:
    """Return a model's output for one question as JSON values. Of a table or list with one row, return the row."""
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        value = value.to_dict("records")
    elif hasattr(value, "tolist"):
        value = value.tolist()
    elif hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, list | tuple) and len(value) == 1:
        return value[0]
    return value


PREFIX = "prompts:/"
MAX_PROMPT = 100_000


@dataclass(frozen=True)
class RegisteredPrompt:
    """One version of a prompt. `uri` names the version and does not change with an alias."""

    uri: str
    text: str


def registered_prompt(store: Store, uri: str) -> RegisteredPrompt:
    """Return the version that ``prompts:/NAME@ALIAS`` or ``prompts:/NAME/VERSION`` names now.

    Raises:
        UsageError: there is none, or it is no plain text: chat messages, or a template with variables.
        TrackingError: the store does not answer.
    """
    what = f"judge prompt `{shown_text(uri)}`"
    if not uri.startswith(PREFIX):
        raise UsageError(f"{what}: write prompts:/NAME@ALIAS or prompts:/NAME/VERSION")
    try:
        with tracking_errors(f"looking up {what}"):
            found = store.client.load_prompt(uri, cache_ttl_seconds=0)
    except TrackingError as error:
        if is_missing(error):
            raise UsageError(f"{what}: {error}; register it, or set its alias") from None
        raise
    text = found.template
    if not isinstance(text, str):
        raise UsageError(f"{what}: holds chat messages; register only the text of the system message")
    if found.variables:
        names = ", ".join(sorted(found.variables))
        raise UsageError(
            f"{what}: has the variables {names}; leave them out, the data is passed in a message of its own"
        )
    if not text.strip() or len(text) > MAX_PROMPT:
        raise UsageError(f"{what}: has {len(text):,} characters; write from 1 to {MAX_PROMPT:,}")
    return RegisteredPrompt(f"{PREFIX}{found.name}/{found.version}", text)
