"""The formats that can be imported: how each tool calls what its rows hold, and what shows a format."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.importing import promptfoo, trec
from evaltrack.golden.importing.drafts import (
    FIELDS,
    TABLE,
    Drafts,
    ImportSettings,
    Notes,
    Preset,
    drafts,
    field_name,
)
from evaltrack.golden.importing.table import FORMS, check_file, document, read_rows
from evaltrack.golden.importing.values import cell, is_empty

RAGAS = Preset(
    name="ragas",
    shown_by=({"user_input"}, {"question", "ground_truth", "contexts"}, {"question", "ground_truths"}),
    fields={
        "question": ("user_input", "question"),
        "expected_answer": ("reference", "ground_truth", "ground_truths"),
        "expected_chunks": ("reference_context_ids",),
    },
    ignored={"response", "multi_responses", "retrieved_contexts", "retrieved_context_ids", "answer", "contexts"},
    texts="reference_contexts",
)


DEEPEVAL = Preset(
    name="deepeval",
    shown_by=({"input", "retrieval_context"}, {"input", "additional_metadata"}),
    fields={
        "question": ("input",),
        "expected_answer": ("expected_output",),
        "expected_tools": ("expected_tools",),
        "notes": ("comments",),
        "metadata": ("additional_metadata",),
    },
    ignored={
        *("actual_output", "retrieval_context", "tools_called"),
        *("token_cost", "input_token_count", "output_token_count", "completion_time"),
    },
    texts="context",
    joint="|",
)

LLAMAINDEX = Preset(
    name="llamaindex",
    shown_by=({"query", "reference_answer"}, {"query", "relevant_docs"}),
    fields={
        "question": ("query",),
        "expected_answer": ("reference_answer",),
        "expected_chunks": ("relevant_docs",),
    },
    ignored={"query_by", "reference_answer_by"},
    texts="reference_contexts",
)


GROUPS = "retrieval_gt[?type(@) == 'array' && length(@) > `1`]"
"""Groups of passages, any one of which is enough."""

AUTORAG = Preset(
    name="autorag",
    shown_by=({"qid", "query", "retrieval_gt"},),
    fields={
        "id": ("qid",),
        "question": ("query",),
        "expected_chunks": (f"!({GROUPS}) && retrieval_gt[]",),
        "expected_passages": (f"!(!({GROUPS})) && retrieval_gt[*].{{any_of: @}}",),
        "expected_answer": ("generation_gt",),
    },
    ignored={"retrieval_gt"},
    texts="retrieval_gt_contents",
)


def _of_phoenix(row: dict[str, Any]) -> dict[str, Any]:
    """The columns `input_*`, `output_*` and `metadata_*` of a CSV as the objects that they were made of."""
    whole: dict[str, Any] = {}
    for name, value in row.items():
        part, _, key = name.partition("_")
        if part in ("input", "output", "metadata") and key:
            whole.setdefault(part, {}).update({} if is_empty(value) else {key: value})
        else:
            whole[name] = value
    return whole


PHOENIX = Preset(
    name="phoenix",
    shown_by=({"example_id"}, {"messages", "ideal"}, {"input", "output"}),
    not_with="epoch",
    fields={
        "id": ("example_id", "id"),
        "question": ("input", "messages"),
        "expected_answer": ("output", "ideal"),
    },
    ignored={"updated_at", "node_id"},
    prepare=_of_phoenix,
)


def _of_langfuse(row: dict[str, Any]) -> dict[str, Any]:
    """The texts that a CSV holds as JSON."""
    return {name: cell(value, ('"',), strict=False) for name, value in row.items()}


LANGFUSE = Preset(
    name="langfuse",
    shown_by=({"input", "expectedOutput"},),
    fields={
        "question": ("input",),
        "expected_answer": ("expectedOutput",),
    },
    ignored={
        *("status", "datasetId", "datasetName", "createdAt", "updatedAt", "sourceTraceId", "sourceObservationId"),
        *("projectId", "mediaReferences", "htmlSourcePath", "version"),
    },
    left_out={"status == 'ARCHIVED'": "archived items: left out"},
    prepare=_of_langfuse,
)


def _of_inspect(row: dict[str, Any]) -> dict[str, Any]:
    """A sample of a log without its results."""
    parts = ("id", "input", "target", "choices", "metadata") if "epoch" in row else tuple(row)
    return {name: row[name] for name in parts if name in row}


INSPECT = Preset(
    name="inspect",
    shown_by=({"input", "target"},),
    fields={"question": ("input",), "expected_answer": ("target",)},
    left_out={"epoch && to_string(epoch) != '1'": "samples of further epochs: left out"},
    prepare=_of_inspect,
)

MLFLOW = Preset(
    name="mlflow",
    shown_by=({"inputs", "expectations"},),
    fields={
        **{name: (f"tags.{name}",) for name in FIELDS},
        **{f"expected_{name}": (f"expectations.expected_{name}",) for name in ("sources", "passages")},
        "expected_chunks": ("expectations.expected_chunks", "expectations.expected_retrieved_context[].doc_uri"),
        "id": ("tags.id", "dataset_record_id"),
        "question": ("inputs.question", "inputs"),
        "history": ("tags.history", "inputs.history"),
        "expected_answer": ("expectations.expected_response", "expectations.expected_answer"),
        "expected_tools": ("expectations.expected_tool_calls",),
        "expected_arguments": (
            "expectations.expected_tool_calls[?arguments] "
            "&& map(&(arguments || `{}`), expectations.expected_tool_calls)",
        ),
    },
    ignored={
        *("inputs", "outputs", "expectations", "tags", "source", "source_type", "source_id"),
        *("created_time", "last_update_time", "created_by", "last_updated_by", "dataset_record_id", "dataset_id"),
    },
)

PRESETS = {
    each.name: each
    for each in (promptfoo.CASE, RAGAS, DEEPEVAL, LLAMAINDEX, AUTORAG, PHOENIX, LANGFUSE, INSPECT, MLFLOW)
}

FORMATS = ("trec", "beir", TABLE.name, *PRESETS)


def read_format(name: str, files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The golden lines that files of a format hold.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: there is no such format.
    """
    if name in ("trec", "beir"):
        return trec.read(files, settings, notes)
    preset = PRESETS.get(name, TABLE)
    if preset is TABLE and name != TABLE.name:
        raise UsageError(f"`form=`: there is no format `{name}`; formats are {', '.join(FORMATS)}")
    reader = partial(promptfoo.read, notes) if preset is promptfoo.CASE else read_rows
    return drafts((row for path in files for row in reader(path, settings.encoding)), preset, settings, notes)


def detected_format(files: list[Path], settings: ImportSettings) -> str:
    """The format that the content of files shows; a field that the user named makes it a table, where nothing does.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: the content shows no format, or more than one.
    """
    if any((path / trec.QUERIES).is_file() for path in files):
        return "beir"
    if kinds := {trec.kind_of_judgements(path, settings.encoding) for path in files} - {""}:
        return min(kinds)
    names = {_by_content(path, settings.encoding) for path in files}
    if len(names) == 1 and (only := names.pop()):
        return only
    if settings.fields:
        return TABLE.name
    raise UsageError(f"{files[0]}: its content does not show its format; name it with `form=`: {', '.join(FORMATS)}")


def _by_content(path: Path, encoding: str) -> str:
    """The one format that the first row shows; empty where none or several do."""
    check_file(path)
    if path.suffix.lower() not in FORMS:
        return ""
    if promptfoo.is_config(document(path)):
        return "promptfoo"
    place, row = next(read_rows(path, encoding), ("", {}))
    if isinstance(row, ValueError):
        raise GoldenError([f"{place}: {row}"])
    names = [
        name
        for name, preset in PRESETS.items()
        if any(row.keys() >= set(each) for each in preset.shown_by) and preset.not_with not in row
    ]
    if not names and any(field_name(name) == "question" for name in row):
        return TABLE.name
    return names[0] if len(names) == 1 else ""
