"""Results of each tool: files that the tools wrote themselves, and rows that hold what is rare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaltrack import import_golden, open_golden
from evaltrack.records import Source, ToolCall, Usage
from tests.files import put

from .recordings import DATA, ESIM, OVERSTAY, ask, ids, opened, refusal, texts, why_not

ANSWER = "A visitor may spend at most 90 days in any period of 180 days in the whole area,"
FILES = [
    ("promptfoo_results.json", "promptfoo"),
    ("inspect_log.eval", "inspect"),
    ("ragas_results.csv", "ragas"),
    ("ragas_results.parquet", "ragas"),
    ("deepeval_run.json", "deepeval"),
]


@pytest.mark.parametrize(("name", "form"), FILES)
def test_files_that_the_tools_wrote(name: str, form: str) -> None:
    """The format shows in the content; answers and texts of sources are at their questions, by text alone too."""
    target = opened(DATA / name)
    response = ask(target, "another id", f"  {OVERSTAY.upper()} ", expected_passages=[{"quote": "Overstay"}])
    assert response.answer == ANSWER
    assert str(texts(response)[0]).startswith("Length of stay\n\nA visitor may spend")
    assert len(texts(response)) == 2
    assert ask(target, "23", ESIM).answer == "I do not know: nothing in the corpus matches the question well enough."
    assert target.notes == [f"{DATA / name}: read as results of {form}"]


@pytest.mark.parametrize(("name", "form"), FILES)
def test_a_set_imported_from_results_is_answered_by_them(tmp_path: Path, name: str, form: str) -> None:
    """Every question of the set has its result in the same file, or the failure that the tool recorded."""
    made = import_golden(DATA / name, tmp_path / "golden.jsonl")
    assert (made.form, made.questions) == (form, 3)
    target = opened(DATA / name)
    for question in open_golden(made.path):
        if form == "promptfoo" and question.id == "3":
            assert why_not(target, "3", question.question) == "FailedElsewhereError: promptfoo recorded: no connection"
        else:
            assert ask(target, question.id, question.question).answer


def test_what_the_files_say_of_tokens_tools_and_models() -> None:
    """As far as each tool records it; ids of sources stand with their texts."""
    promptfoo, inspect, deepeval = (opened(DATA / name) for name, _ in (FILES[0], FILES[1], FILES[4]))
    assert ask(promptfoo, "1", OVERSTAY).usage == Usage(prompt_tokens=20, completion_tokens=10)
    logged = ask(inspect, "1", OVERSTAY)
    assert (logged.model, logged.usage) == ("mockllm/model", Usage(prompt_tokens=17, completion_tokens=80))
    assert ids(logged) == ["schengen-visa#length-of-stay", "schengen-visa#overstay"]
    assert all(texts(logged))
    assert ask(deepeval, "1", OVERSTAY).tool_calls == (ToolCall(name="search", arguments={"k": 3}),)


def test_a_log_as_json_is_read_as_one_in_its_own_form(tmp_path: Path) -> None:
    """Also with numbers that are none, as Inspect writes a score that could not be given."""
    from evaltrack.golden.exchange.log_archive import samples_in

    samples = [sample for _, sample in samples_in(DATA / "inspect_log.eval")]
    samples[0]["scores"]["includes"]["value"] = float("nan")
    target = opened(put(tmp_path / "log.json", {"version": 2, "eval": {}, "samples": samples}))
    assert ask(target, "1", OVERSTAY) == ask(opened(DATA / "inspect_log.eval"), "1", OVERSTAY)


def promptfoo(output: Any, **more: Any) -> dict[str, Any]:
    """A result as promptfoo writes it."""
    row = {"vars": {"question": "q"}, "testCase": {}, "provider": {"id": "p"}, "promptIdx": 0}
    return {**row, "response": {"output": output}, **more}


def inspect(**more: Any) -> dict[str, Any]:
    """A sample as Inspect writes it."""
    output = {"model": "m", "choices": [{}], "completion": "a"}
    return {"id": 1, "epoch": 1, "input": "q", "target": "t", "output": output, **more}


ROWS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    (promptfoo({"question": "q", "answer": "a", "sources": ["x", {"id": 7, "text": "t"}]}), {"ids": ["x", "7"]}),
    (promptfoo({"answer": "a", "score": 1}, vars={"question": "q", "context": "c"}), {"texts": ["c"]}),
    (promptfoo({"steps": [1]}), {"answer": '{"steps": [1]}', "sources": None}),
    (promptfoo([1]), {"answer": "[1]"}),
    (promptfoo(7.0), {"answer": "7"}),
    (promptfoo(""), {"answer": ""}),
    (promptfoo("a", vars={"q": "q"}, failureReason=1, error="an assertion"), {"answer": "a"}),
    (promptfoo("a", response={"output": "a", "tokenUsage": {"total": 9, "cached": 9}}), {"usage": None}),
    (inspect(input=[{"role": "user", "content": [{"type": "text", "text": "q"}]}]), {"answer": "a", "sources": None}),
    (
        inspect(
            input="attachment://1",
            output={"model": "m", "choices": [{}], "completion": "attachment://2", "usage": {"input_tokens": 3}},
            attachments={"1": "q", "2": "long"},
            store={"documents": [{"page_content": "c", "metadata": {"id": "d", "title": "T"}}]},
        ),
        {"answer": "long", "sources": (Source(chunk_id="d", title="T", text="c"),)},
    ),
    (
        inspect(
            messages=[{"role": "assistant", "tool_calls": [{"function": "f", "arguments": {"a": 1}}, {}]}, {}],
            model_usage={"m": {"input_tokens": 2, "output_tokens": 3}, "grader": {"input_tokens": 99}},
        ),
        {"tool_calls": (ToolCall(name="f", arguments={"a": 1}),), "usage": Usage(prompt_tokens=2, completion_tokens=3)},
    ),
    (
        {"user_input": "q", "response": "a", "retrieved_contexts": ["c"], "retrieved_context_ids": ["i"]},
        {"sources": (Source(chunk_id="i", text="c"),)},
    ),
    ({"user_input": "q", "response": "a", "retrieved_context_ids": [4]}, {"ids": ["4"]}),
    ({"user_input": [{"content": "q", "role": "user"}], "response": "a"}, {"answer": "a"}),
    ({"user_input": '[{"content": "q", "role": "user"}]', "response": "a"}, {"answer": "a"}),
    ({"input": "q", "actual_output": "a", "tools_called": [{"type": "f"}, "g"]}, {"tool_calls": (), "sources": None}),
    ({"question": "q", "answer": "a", "contexts": ["c"], "faithfulness": 1.0}, {"texts": ["c"]}),
    ({"user_input": "q", "response": None, "retrieved_contexts": []}, {"answer": None, "sources": ()}),
    (
        {"input": "q", "actual_output": "a", "retrieval_context": "c|d", "tools_called": '[{"name": "f"}]'},
        {"texts": ["c", "d"], "tool_calls": (ToolCall(name="f"),)},
    ),
]


@pytest.mark.parametrize(("row", "expected"), ROWS)
@pytest.mark.parametrize("ending", ["json", "jsonl"])
def test_what_a_row_holds(tmp_path: Path, row: dict[str, Any], expected: dict[str, Any], ending: str) -> None:
    """In an array, or one a line."""
    target = opened(put(tmp_path / f"r.{ending}", [row]))
    response = ask(target, "1", "q")
    fields = {"ids": ids(response), "texts": texts(response), **dict(response)}
    assert {name: fields[name] for name in expected} == expected


FAILURES = [
    (promptfoo(None, response={"error": "no connection"}), "promptfoo recorded: no connection"),
    (promptfoo(None, response={}, error="timed out", failureReason=2), "promptfoo recorded: timed out"),
    (promptfoo(None), "promptfoo recorded: promptfoo recorded no output"),
    (inspect(error={"message": "RuntimeError('x')", "traceback": "…"}), "inspect recorded: RuntimeError('x')"),
    (inspect(output={"model": "m", "choices": [], "completion": ""}), "Inspect recorded no output of a model"),
    ({"user_input": "q", "response": "", "retrieved_contexts": None}, "Ragas recorded neither response nor contexts"),
    ({"input": "q", "actualOutput": None, "metricsData": []}, "DeepEval recorded no actual output"),
]


@pytest.mark.parametrize(("row", "message"), FAILURES)
def test_a_failure_elsewhere_is_a_failure_here(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    """It is raised at its question, so that the row has a reason and no number."""
    said = why_not(opened(put(tmp_path / "r.json", [row])), "1", "q")
    assert said.startswith("FailedElsewhereError: ")
    assert message in said


BAD = [
    (promptfoo("a", vars={"a": "1", "b": "2"}), "cannot tell the question among the variables (a, b); name it with"),
    (promptfoo("a", vars={}), "cannot tell the question among the variables (none)"),
    (promptfoo({"answer": "a", "sources": 7}), "`sources` holds `7`; write a list of texts, ids or objects"),
    (promptfoo({"answer": "a", "sources": [[1]]}), "`sources` holds `[1]`; write a list"),
    (inspect(metadata={"sources": ["a"], "contexts": ["b", "c"]}), "lists 1 ids of sources for 2 texts"),
    (inspect(input=None), "holds NoneType; write a text"),
    ({"response": "a", "user_input": ""}, "has no `user_input`; name the column of the question with `?question=NAME`"),
    ({"actual_output": "a", "input": ""}, "has no `input`; a test case of several turns is no single question"),
    (promptfoo({"answer": "a", "sources": [{"score": 1}]}), "a source needs a `chunk_id` or a `title`"),
]


@pytest.mark.parametrize(("row", "message"), BAD)
def test_bad_rows_are_listed_with_their_places(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    """All of them in one error."""
    lines = refusal(put(tmp_path / "r.json", [row, row])).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["r.json", "r.json"]
    assert lines[0].startswith("r.json: [1]: ")
    assert message in lines[0]
    assert message in lines[1]


def test_a_variable_or_column_can_be_named_as_the_question(tmp_path: Path) -> None:
    """Where it is called as none of the usual ones."""
    rows = put(tmp_path / "p.json", [promptfoo("a", vars={"q": "one", "tone": "dry"})])
    assert ask(opened(rows, "question=q"), "1", "one").answer == "a"
    columns = put(tmp_path / "r.json", [{"user_input": "x", "asked": "one", "response": "a"}])
    assert ask(opened(columns, "question=asked"), "1", "one").answer == "a"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"a": 1}, "does not show which tool wrote it; choose with `?format=NAME`: promptfoo, inspect, ragas"),
        (
            {"user_input": "q", "response": "a", "input": "q", "actual_output": "b"},
            "may be of ragas or deepeval; choose with `?format=NAME`: ragas, deepeval",
        ),
    ],
)
def test_a_format_that_cannot_be_told(tmp_path: Path, row: dict[str, Any], why: str) -> None:
    """The message names those that it may be, and the setting; with the setting it is read."""
    path = put(tmp_path / "r.json", [row])
    assert refusal(path).startswith(f"recorded target r.json: its content {why}")
    if "input" in row:
        assert ask(opened(path, "format=deepeval"), "1", "q").answer == "b"


def test_rows_that_show_nothing_leave_it_to_those_after_them(tmp_path: Path) -> None:
    """A failed test case has no output; its neighbours have."""
    rows = [{"input": "q", "name": "t"}, {"input": "r", "actualOutput": "a"}]
    assert ask(opened(put(tmp_path / "r.json", {"testCases": rows})), "1", "r").answer == "a"


def test_lines_in_our_own_form_in_an_array(tmp_path: Path) -> None:
    """As one object a line."""
    path = put(tmp_path / "r.json", [{"id": 1, "answer": "a", "sources": ["x"]}])
    for settings in ("", "format=lines"):
        assert ids(ask(opened(path, settings), "1", "any")) == ["x"]
    nameless = put(tmp_path / "r.json", [{"id": None, "answer": "a"}])
    assert refusal(nameless).endswith("name the question that was answered")


def test_json_as_it_is_printed_on_one_line_or_several(tmp_path: Path) -> None:
    """The same results."""
    value = {"testCases": [{"input": "q", "actualOutput": "a", "order": 0}]}
    for indent in (None, 0, 2):
        path = put(tmp_path / "r.json", json.dumps(value, indent=indent))
        assert ask(opened(path), "1", "q").answer == "a"
