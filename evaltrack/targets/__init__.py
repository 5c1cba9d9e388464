"""Opens the target that the prefix of a name selects (`bm25:`, `python:`, ...) or the default, and reads settings.

| name | what is asked |
| --- | --- |
| `bm25:DIR` | an index over a folder of pages; the default is the corpus next to the golden set |
| `python:package.module:function` | your own function, sync or async |
| `models:/NAME@ALIAS`, `runs:/RUN/NAME` | a model that MLflow holds |
| `traces:EXPERIMENT` | the answers of an application, from its traces in MLflow |
| `recorded:FILE` | responses you recorded earlier: JSON, JSON Lines, a TREC run |
| `http://…`, `https://…` | a server that takes a question as JSON |
| `command:PROGRAM …` | a program, run for each question |
| `openai:MODEL` | a model asked once, without sources |
| `endpoints:/NAME` | the same through the AI gateway of an MLflow server |
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, ConfigDict, ValidationError

from evaltrack.errors import Guide, UsageError
from evaltrack.golden.corpus import domain_folders
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Target

KINDS = {
    "bm25": "evaltrack.targets.bm25:open_bm25",
    "command": "evaltrack.targets.command:open_command",
    "endpoints": "evaltrack.targets.openai:open_endpoint",
    "http": "evaltrack.targets.http:open_http",
    "https": "evaltrack.targets.http:open_http",
    "openai": "evaltrack.targets.openai:open_openai",
    "python": "evaltrack.targets.python:open_python",
    "recorded": "evaltrack.targets.recorded:open_recorded",
    "models": "evaltrack.targets.models:open_model",
    "runs": "evaltrack.targets.models:open_model",
    "traces": "evaltrack.targets.traces:open_traces",
}
"""Each kind's opener: `(text after the prefix, settings) -> Target`; imported only if it is used."""


def default_target(golden: Path, domains: Iterable[str] = ()) -> str:
    """Return the default target of a golden set: BM25 over `corpus/<name of the set>` in the set's folder.

    If there is no such corpus, these are used: recorded responses in `<name of the set>_responses`, or, if `corpus` has
    a folder for each of `domains`, an index per domain.

    Raises:
        UsageError: there is no corpus and there are no responses.
    """
    corpus = golden.parent / "corpus" / golden.stem
    responses = golden.parent / f"{golden.stem}_responses" / "strong.jsonl"
    if corpus.is_dir():
        return f"bm25:{corpus}"
    if responses.is_file():
        return f"recorded:{responses}"
    if (names := set(domains)) and domain_folders(corpus.parent, names):
        return f"bm25:{corpus.parent}?by=domain"
    why = f"no target was named and there is no corpus at {corpus}; name one with -t, e.g. -t bm25:DIR"
    raise UsageError(why, guide=Guide.TARGETS)


OF_STORE = frozenset({"endpoints", "models", "python", "runs", "traces"})
"""Kinds that use an MLflow store or server, or write traces to it; their setting `store` names it."""


def open_target(name: str, settings: Mapping[str, str] | None = None, store_uri: str | None = None) -> Target:
    """Return the target called `name`; `store_uri` is the MLflow store of the run if it is not the default.

    Each kind has its own settings. Except for URLs and commands they can also follow a `?`: ``bm25:docs?floor=3.0``.

    Raises:
        UsageError: the kind is unknown, or the target cannot be opened.
    """
    kind, colon, place = name.partition(":")
    if kind in KINDS and colon and not place:
        raise UsageError(f"target `{shown_text(name)}` names nothing after the colon; see `evaltrack run --help`")
    if kind not in KINDS or not colon:
        near = difflib.get_close_matches(kind.lower(), KINDS, n=1, cutoff=0.65)
        hint = f"did you mean `{near[0]}:`?" if near else f"a target starts with {', '.join(f'`{k}:`' for k in KINDS)}"
        raise UsageError(f"unknown target `{shown_text(name)}`; {hint}")
    options = dict(settings or {})
    if kind in ("http", "https", "models", "runs"):
        place = name
    if kind not in ("http", "https", "command"):
        place, _, query = place.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True)) | options
    if kind in OF_STORE and store_uri:
        options.setdefault("store", store_uri)
    opener: Callable[[str, dict[str, str]], Target] = resolve_name(KINDS[kind])
    return opener(place, options)


class TargetSettings(BaseModel):
    """The settings of a kind of target. Errors show the description of a field."""

    model_config = ConfigDict(extra="forbid")


Settings = TypeVar("Settings", bound=TargetSettings)


def checked_settings(
    kind: str, form: type[Settings], settings: Mapping[str, str], also: Iterable[str] = ()
) -> Settings:
    """Return the settings of a target; `also` are the names of those that were taken before.

    Raises:
        UsageError: a setting is unknown, or its value is wrong.
    """
    try:
        return form.model_validate(settings)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
    name = str(detail["loc"][0])
    if detail["type"] == "extra_forbidden":
        raise UsageError(f"{kind} target: unknown setting `{name}`; known: {', '.join([*form.model_fields, *also])}")
    write = form.model_fields[name].description
    raise UsageError(f"{kind} target: {name} is `{shown_text(settings[name])}`; write {write}")
