"""The formats that can be imported: how each tool calls what its rows hold, and what shows a format."""

from __future__ import annotations

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
from evaltrack.golden.importing.values import is_empty, opened, parsed


def _of_ragas(row: dict[str, Any]) -> dict[str, Any]:
    """Test sets of Ragas 0.1 call the passages of a question `contexts`, as other files call what came back."""
    if "evolution_type" not in row or "contexts" not in row:
        return row
    return {("reference_contexts" if name == "contexts" else name): value for name, value in row.items()}


RAGAS = Preset(
    name="ragas",
    shown_by=({"user_input"}, {"question", "ground_truth", "contexts"}),
    fields={
        "question": ("user_input", "question"),
        "expected_answer": ("reference", "ground_truth"),
        "expected_chunks": ("reference_context_ids",),
    },
    ignored={"response", "answer", "multi_responses", "retrieved_contexts", "retrieved_context_ids", "contexts"},
    texts="reference_contexts",
    prepare=_of_ragas,
)


DEEPEVAL = Preset(
    name="deepeval",
    shown_by=tuple(
        {what, other} for what in ("input", "scenario") for other in ("retrieval_context", "additional_metadata")
    ),
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
    left_out={"scenario && !input": "conversations, which are no single question: left out"},
)

LLAMAINDEX = Preset(
    name="llamaindex",
    shown_by=({"query", "reference_answer"}, {"query", "relevant_docs"}),
    fields={
        "id": ("id",),
        "question": ("query",),
        "expected_answer": ("reference_answer",),
        "expected_chunks": ("relevant_docs",),
    },
    ignored={"query_by", "reference_answer_by"},
    texts="reference_contexts",
)


def _of_autorag(row: dict[str, Any]) -> dict[str, Any]:
    """A chunk of each group, or, where a group has several, any one of them."""
    groups = opened(row.get("retrieval_gt"))
    if not isinstance(groups, list):
        return row
    lists = [group if isinstance(group, list) else [group] for group in groups]
    ids = [[key for key in group if not is_empty(key)] for group in lists]
    if all(len(group) <= 1 for group in ids):
        return {**row, "retrieval_gt": [key for group in ids for key in group]}
    rest = {name: value for name, value in row.items() if name != "retrieval_gt"}
    return {**rest, "expected_passages": [{"any_of": list(map(str, group))} for group in ids if group]}


AUTORAG = Preset(
    name="autorag",
    shown_by=({"qid", "query", "retrieval_gt"},),
    fields={
        "id": ("qid",),
        "question": ("query",),
        "expected_chunks": ("retrieval_gt",),
        "expected_passages": ("expected_passages",),
        "expected_answer": ("generation_gt",),
        "metadata": ("metadata",),
    },
    texts="retrieval_gt_contents",
    prepare=_of_autorag,
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
    not_with={"epoch"},
    fields={
        "id": ("example_id", "id"),
        "question": ("input", "messages"),
        "expected_answer": ("output", "ideal"),
        "metadata": ("metadata",),
    },
    ignored={"updated_at", "node_id"},
    prepare=_of_phoenix,
)


def _of_langfuse(row: dict[str, Any]) -> dict[str, Any]:
    """The texts that a CSV holds as JSON."""
    return {name: _unquoted(value) for name, value in row.items()}


def _unquoted(value: Any) -> Any:
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return parsed(value)
        except ValueError:
            return value
    return value


LANGFUSE = Preset(
    name="langfuse",
    shown_by=({"input", "expectedOutput"},),
    fields={
        "id": ("id",),
        "question": ("input",),
        "expected_answer": ("expectedOutput", "expected_output"),
        "metadata": ("metadata",),
    },
    ignored={
        *("status", "datasetId", "datasetName", "createdAt", "updatedAt", "sourceTraceId", "sourceObservationId"),
        *("dataset_id", "dataset_name", "created_at", "updated_at", "source_trace_id", "source_observation_id"),
        *("projectId", "project_id", "mediaReferences", "media_references", "htmlSourcePath", "version"),
    },
    left_out={"status == 'ARCHIVED'": "archived items: left out"},
    prepare=_of_langfuse,
)


def _of_inspect(row: dict[str, Any]) -> dict[str, Any]:
    """A sample without its results; the letter of a right choice becomes its text."""
    if "epoch" in row:
        row = {name: row[name] for name in ("id", "input", "target", "choices", "metadata") if name in row}
    choices, target = row.get("choices"), row.get("target")
    if not isinstance(choices, list):
        return row
    texts = [_choice(each, choices) for each in (target if isinstance(target, list) else [target])]
    return {**row, "target": texts[0] if len(texts) == 1 else texts}


def _choice(target: Any, choices: list[Any]) -> Any:
    at = ord(target) - ord("A") if isinstance(target, str) and len(target) == 1 else -1
    return choices[at] if 0 <= at < len(choices) else target


INSPECT = Preset(
    name="inspect",
    shown_by=({"input", "target"},),
    fields={"id": ("id",), "question": ("input",), "expected_answer": ("target",), "metadata": ("metadata",)},
    left_out={"epoch && to_string(epoch) != '1'": "samples of further epochs: left out"},
    prepare=_of_inspect,
)

MLFLOW = Preset(
    name="mlflow",
    shown_by=({"inputs", "expectations"},),
    fields={
        **{name: (f"tags.{name}",) for name in FIELDS},
        **{f"expected_{name}": (f"expectations.expected_{name}",) for name in ("chunks", "sources", "passages")},
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

PRESETS = {each.name: each for each in (RAGAS, DEEPEVAL, LLAMAINDEX, AUTORAG, PHOENIX, LANGFUSE, INSPECT, MLFLOW)}

FORMATS = ("trec", "beir", TABLE.name, "promptfoo", *PRESETS)


def read_format(name: str, files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """The golden lines that files of a format hold.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: there is no such format.
    """
    if name in ("trec", "beir"):
        return trec.read(files, settings, notes)
    if name == "promptfoo":
        return promptfoo.read(files, settings, notes)
    preset = TABLE if name == TABLE.name else PRESETS.get(name)
    if preset is None:
        raise UsageError(f"`form=`: there is no format `{name}`; formats are {', '.join(FORMATS)}")
    return (draft for path in files for draft in drafts(read_rows(path, settings.encoding), preset, settings, notes))


def detected_format(files: list[Path], settings: ImportSettings) -> str:
    """The format that the content of files shows; a field that the user named makes it a table, where nothing does.

    Raises:
        GoldenError: a file cannot be read.
        UsageError: the content shows no format, or more than one.
    """
    if any(map(trec.is_folder_of_beir, files)):
        return "beir"
    for path in files:
        check_file(path)
    texts = [path for path in files if path.suffix.lower() not in (".parquet", ".xlsx")]
    judgements = [path for path in texts if trec.is_judgements(path, settings.encoding)]
    if judgements:
        return "beir" if any(trec.has_header(path, settings.encoding) for path in judgements) else "trec"
    names = {_by_content(path, settings.encoding) for path in files}
    if len(names) == 1 and (only := names.pop()):
        return only
    if settings.fields:
        return TABLE.name
    raise UsageError(f"{files[0]}: its content does not show its format; name it with `form=`: {', '.join(FORMATS)}")


def _by_content(path: Path, encoding: str) -> str:
    if path.suffix.lower() not in FORMS:
        return ""
    if promptfoo.is_config(document(path)):
        return "promptfoo"
    for place, row in read_rows(path, encoding):
        if isinstance(row, ValueError):
            raise GoldenError([f"{place}: {row}"])
        return _by_columns(row)
    return ""


def _by_columns(row: dict[str, Any]) -> str:
    """The one format that has these columns; empty where none or several have."""
    names = [name for name, preset in PRESETS.items() if preset.shows_in(row)]
    if promptfoo.shows_in(row):
        names.append("promptfoo")
    if not names and any(field_name(name) == "question" for name in row):
        return TABLE.name
    return names[0] if len(names) == 1 else ""
