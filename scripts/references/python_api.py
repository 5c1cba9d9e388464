"""The page of the Python API: every name of `evaltrack.__all__`, with its signature and its docstring."""

from __future__ import annotations

import inspect
import re
from typing import Any

import evaltrack
from scripts.references.markdown import prose

HEAD = """# Python API

Import each name from `evaltrack`. [Use it from Python](../how-to/python.md) has examples; `help(NAME)` describes
arguments and fields. `**settings` takes every [setting](../settings.md) as a keyword argument.
"""


def python_page() -> str:
    """The whole page: functions first, then the records that they take and return."""
    found = {name: getattr(evaltrack, name) for name in evaltrack.__all__ if name != "__version__"}
    functions = [_function(name, each) for name, each in found.items() if not isinstance(each, type)]
    classes = [_class(name, each) for name, each in found.items() if isinstance(each, type)]
    return "\n".join([HEAD, "## Functions", *functions, "\n## Records", *classes]) + "\n"


def _function(name: str, function: Any) -> str:
    signature = inspect.signature(function)
    parts, starred = [], False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        parts.append(_parameter(each))
    text = f"{name}({', '.join(parts)})" if parts else f"{name}()"
    if len(text) > 100:
        text = f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + ")"
    return f"\n### {name}\n\n{_code(f'{text} -> {signature.return_annotation}')}\n{_docstring(function)}"


def _parameter(each: inspect.Parameter) -> str:
    if each.kind is each.VAR_KEYWORD:
        return f"**{each.name}"
    default = each.default
    shown = "" if default is each.empty else f" = {'...' if callable(default) else repr(default)}"
    return f"{each.name}: {each.annotation}{shown}"


def _class(name: str, record: type) -> str:
    fields = [
        f"{field}: {annotation}{_default(record, field)}"
        for base in reversed(record.__mro__)
        if base.__module__.startswith("evaltrack")
        for field, annotation in inspect.get_annotations(base).items()
        if not field.startswith("_") and field != "model_config" and "ClassVar" not in str(annotation)
    ]
    names = [
        each
        for base in record.__mro__
        if base.__module__.startswith("evaltrack")
        for each, value in vars(base).items()
        if not each.startswith("_") and (isinstance(value, property) or hasattr(value, "attrname"))
    ]
    lines = [f"\n### {name}\n", _code("\n".join([f"class {name}", *(f"    {field}" for field in fields)]))]
    lines.append(_docstring(record))
    if names:
        lines.append(f"Properties: {', '.join(f'`{each}`' for each in names)}.\n")
    return "\n".join(lines)


def _default(record: type, field: str) -> str:
    model: Any = getattr(record, "model_fields", {}).get(field)
    if model is None or model.is_required():
        return ""
    return f" = {model.get_default(call_default_factory=True)!r}" if model.default is not None else " = None"


def _code(text: str) -> str:
    """Indented, so that it is shown and never run."""
    return "\n".join(f"    {line}" for line in text.splitlines()) + "\n"


def _docstring(value: Any) -> str:
    """The first paragraph of a docstring in Google's style, and the errors."""
    first, *rest = re.split(r"\n\s*\n", inspect.getdoc(value) or "")
    raised = [part.partition(":\n")[2] for part in rest if part.startswith("Raises:\n")]
    errors = [re.match(r"(\w+): ?(.*)", _plain(entry)) for part in raised for entry in re.split(r"\n(?=    \S)", part)]
    items = [f"- `{found[1]}`: {prose(found[2])}" for found in errors if found]
    return "\n".join([f"{prose(_plain(first))}\n", *(["Raises:\n", *items, ""] if items else [])])


def _plain(text: str) -> str:
    return re.sub(r"``([^`]+)``", r"`\1`", " ".join(text.split()))
