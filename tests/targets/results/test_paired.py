"""Which result is of which question, and what is said of those that have none."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.records.id_hashes import IdHashes
from tests.conftest import REPO
from tests.files import put

from .recordings import DATA, ESIM, OVERSTAY, ask, ids, opened, refusal, why_not


def samples(*rows: dict[str, Any]) -> dict[str, Any]:
    """A log of Inspect with these samples."""
    output = {"model": "m", "choices": [{}], "completion": "a"}
    return {"samples": [{"epoch": 1, "target": "", "output": output, **row} for row in rows]}


def answers(**texts: str) -> dict[str, Any]:
    """A log of Inspect with a sample for each id, its input, and its id as answer."""
    return samples(
        *(
            {"id": key, "input": text, "output": {"model": "m", "choices": [{}], "completion": key}}
            for key, text in texts.items()
        )
    )


def test_an_id_counts_where_the_texts_agree(tmp_path: Path) -> None:
    """Samples that a tool numbered by itself have ids of other questions: then the text decides."""
    target = opened(put(tmp_path / "log.json", answers(a="one", b="two")))
    assert ask(target, "a", " One").answer == "a"
    assert ask(target, "a", "two").answer == "b"
    assert ask(target, "c", "one").answer == "a"
    assert why_not(target, "a", "three").endswith("log.json; pair by ids alone with `?pair=id`")
    assert why_not(target, "c", "three").endswith("log.json: no result has this id or text")
    assert target.notes[1].endswith("questions that none of its 2 results is of: 2 (`a`, `c`)")


def test_pairing_by_ids_or_texts_alone(tmp_path: Path) -> None:
    """A prompt around the question is no other question where ids are to be trusted."""
    path = put(tmp_path / "log.json", answers(a="Please answer: one", b="two"))
    assert ask(opened(path, "pair=id"), "a", "one").answer == "a"
    assert "no result has this id" in why_not(opened(path, "pair=id"), "c", "two")
    assert ask(opened(path, "pair=text"), "a", "two").answer == "b"
    assert "no result has this text" in why_not(opened(path, "pair=text"), "a", "one")
    rows = put(tmp_path / "r.json", [{"user_input": "q", "response": "a"}])
    assert refusal(rows, "pair=id").endswith("has no id of a question; leave out `pair=`, or give the question an id")
    assert refusal(path, "pair=x") == "recorded target: pair is `x`; write id or text"


def test_results_of_other_questions_are_counted(tmp_path: Path) -> None:
    """Where an id alone says of which question they are; a text may be that of a question with another id."""
    golden = IdHashes(array("q", [hash("1")]))
    rows = put(tmp_path / "rows.json", [{"id": key, "answer": "a"} for key in (1, 7, 8)])
    table = put(tmp_path / "rows.csv", "id,answer\n1,a\n7,b\n8,c\n")
    for path in (rows, table):
        whole = f"{path}: results of no question in the golden set: 2 (`7`, `8`); nothing was done with them"
        assert opened(path).strangers(golden) == whole
    log = put(tmp_path / "log.json", answers(a="one", b="two"))
    assert [opened(log, pair).strangers(golden) for pair in ("", "pair=text")] == ["", ""]
    assert "of no question in the golden set: 2 (`a`, `b`)" in opened(log, "pair=id").strangers(golden)


def test_many_questions_without_a_result_are_one_note(tmp_path: Path) -> None:
    """With the first three."""
    target = opened(put(tmp_path / "log.json", answers(a="one")))
    for key in "wxyzw":  # a question may be asked again
        why_not(target, key, key)
    assert target.notes[1].endswith("is of: 4 (`w`, `x`, `y`, …)")


def test_several_results_of_one_text(tmp_path: Path) -> None:
    """Ids tell them apart; without ids they are refused, and no question gets the wrong one."""
    target = opened(put(tmp_path / "log.json", answers(a="one", b="one")))
    assert (ask(target, "a", "one").answer, ask(target, "b", "one").answer) == ("a", "b")
    assert why_not(target, "c", "one").endswith("are of this text, and none has this id")
    rows = put(tmp_path / "r.json", [{"user_input": "q", "response": text} for text in "ab"])
    assert refusal(rows) == "r.json: [2]: the question of r.json: [1] is recorded twice; keep one of them"
    twice = put(tmp_path / "log.json", samples({"id": 1, "input": "q"}, {"id": 1, "input": "q"}))
    assert refusal(twice) == "log.json: samples[2]: id `1` is recorded twice; keep one of them"


def promptfoo(provider: str, prompt: int, output: str) -> dict[str, Any]:
    """A result of promptfoo."""
    whose = {"provider": {"id": provider}, "promptIdx": prompt}
    return {"vars": {"question": "q"}, "testCase": {}, "response": {"output": output}, **whose}


def test_one_of_several_providers_prompts_or_epochs_is_chosen(tmp_path: Path) -> None:
    """The message names what there is to choose; a choice that is not there is refused, and one that says nothing."""
    rows = [promptfoo(name, prompt, f"{name}{prompt}") for name in "ab" for prompt in (0, 1)]
    path = put(tmp_path / "p.json", {"results": {"results": rows}})
    assert refusal(path).endswith("p.json: holds results of 2 providers; choose one with `?provider=`: `a`, `b`")
    assert "holds results of 2 prompts; choose one with `?prompt=`: `0`, `1`" in refusal(path, "provider=b")
    assert ask(opened(path, "provider=b&prompt=0"), "1", "q").answer == "b0"
    assert refusal(path, "provider=c").endswith("`provider` is c; there are `a`, `b`")
    assert refusal(path, "provider=a&prompt=0&epoch=1").endswith("setting `epoch` says nothing of promptfoo")
    log = put(tmp_path / "log.json", samples({"id": 1, "input": "q"}, {"id": 1, "input": "q", "epoch": 2}))
    assert "holds results of 2 epochs" in refusal(log)
    assert ask(opened(log, "epoch=2"), "1", "q").answer == "a"


def test_a_choice_that_leaves_nothing(tmp_path: Path) -> None:
    """Two choices that are there, and no result that has both."""
    path = put(tmp_path / "p.json", [promptfoo("a", 0, "x"), promptfoo("b", 1, "y")])
    assert refusal(path, "provider=a&prompt=1") == "recorded target p.json: holds no results"


def test_texts_get_their_ids_from_a_corpus(tmp_path: Path) -> None:
    """Whatever their spaces; a text that is not in it has a name that no set expects, and is counted."""
    rows = put(tmp_path / "r.json", [{"user_input": "q", "response": "a", "retrieved_contexts": ["the  one", "other"]}])
    corpus = put(tmp_path / "c.jsonl", [{"_id": "page#one", "text": "the one"}])
    target = opened(rows, f"corpus={corpus}")
    first, second = ids(ask(target, "1", "q", expected_chunks=["page#one"]))
    assert first == "page#one"
    assert str(second).startswith("text-")
    assert target.notes[1:] == [f"{rows}: 1 of 2 texts are not in the corpus"]
    elsewhere = put(tmp_path / "d.jsonl", [{"_id": "x", "text": "y"}])
    assert "none of its texts is one of the passages of" in refusal(rows, f"corpus={elsewhere}")
    assert "there is no such folder or file" in refusal(rows, "corpus=nowhere")


def test_texts_without_ids_are_no_miss_where_ids_are_expected(tmp_path: Path) -> None:
    """Retrieval is not measured then; quotations are looked for in the texts, and a negative expects no id."""
    path = DATA / "ragas_results.csv"
    target = opened(path)
    assert ask(target, "1", OVERSTAY, expected_chunks=["schengen-visa#overstay"]).sources is None
    assert ask(target, "1", OVERSTAY, expected_sources=["Visas"]).sources is None
    assert ask(target, "1", OVERSTAY, expected_passages=[{"any_of": ["schengen-visa#overstay"]}]).sources is None
    assert len(ids(ask(target, "1", OVERSTAY, expected_passages=[{"quote": "an offence"}]))) == 2
    mixed = [{"quote": "an offence"}, {"any_of": ["schengen-visa#overstay"]}]
    assert ask(target, "4", OVERSTAY, expected_passages=mixed).sources is None
    assert ask(target, "1", OVERSTAY, expected_chunks=[]).sources
    assert ask(target, "23", ESIM).sources == ()
    assert "retrieval is not measured: 2; name the corpus (`?corpus=DIR`)" in target.notes[1]


def test_names_of_test_cases_are_no_ids(tmp_path: Path) -> None:
    """DeepEval's `name` may be that of a group."""
    rows = [{"input": text, "actualOutput": text, "name": "group"} for text in ("one", "two")]
    target = opened(put(tmp_path / "d.json", {"testCases": rows}))
    assert [ask(target, "9", text).answer for text in ("one", "two")] == ["one", "two"]


def test_equal_texts_have_one_name(tmp_path: Path) -> None:
    """So that a repeat counts as one."""
    rows = put(tmp_path / "r.json", [{"user_input": "q", "response": "a", "retrieved_contexts": ["x", "y", "x"]}])
    first, second, third = ids(ask(opened(rows), "1", "q"))
    assert first == third != second


@pytest.mark.parametrize("name", ["promptfoo_results.json", "inspect_log.eval", "ragas_results.parquet"])
def test_a_run_over_results_of_another_tool(tmp_path: Path, store_uri: str, name: str) -> None:
    """Sources are scored by the quotations of the set; a failure of theirs is a row with its reason."""
    lines = [json.loads(line) for line in (REPO / "golden/travel.jsonl").read_text().splitlines()]
    questions = [lines[at] for at in (0, 2, 22)]
    questions[0]["expected_passages"] = [{"quote": "is an offence under national law"}]
    golden = put(tmp_path / "golden.jsonl", questions)
    made = run_eval(golden, target=f"recorded:{DATA / name}", judge="none", tracking_uri=store_uri, traces="off")
    rows = {row.id: row for row in made.read_rows()}
    assert rows["1"].scores["recall_at_k"] == 1
    assert rows["1"].scores["reciprocal_rank"] == 0.5
    assert rows["23"].scores["negative_pass"] == 1
    failed = "target_error: FailedElsewhereError: promptfoo recorded: no connection"
    assert rows["3"].error == (failed if name.startswith("promptfoo") else None)
    assert made.totals["num_errors"] == name.startswith("promptfoo")


def test_verdicts_beside_a_file_are_taken_whatever_its_settings(tmp_path: Path, store_uri: str) -> None:
    """`NAME.verdicts.jsonl` beside `recorded:NAME.jsonl?format=ragas`."""
    path = put(tmp_path / "r.jsonl", [{"user_input": "q", "response": "a"}])
    verdict = {"accuracy": 1, "completeness": 1, "relevance": 1, "overall_score": 0.9, "reasoning": "right"}
    put(tmp_path / "r.verdicts.jsonl", [{"id": "1", **verdict}])
    golden = put(tmp_path / "g.jsonl", [{"id": 1, "question": "q", "expected_answer": "a"}])
    made = run_eval(golden, target=f"recorded:{path}?format=ragas", tracking_uri=store_uri, traces="off")
    assert made.metrics["judge_score"] == 0.9


def test_texts_of_a_tool_that_are_hostile_are_shown_on_one_line(tmp_path: Path) -> None:
    """Names and ids out of a file cannot break a message, and are bounded."""
    rows = [promptfoo(name + "\x1b[2J\n" + "x" * 500, 0, "a") for name in "ab"]
    said = refusal(put(tmp_path / "p.json", rows))
    assert "\x1b" not in said
    assert "\n" not in said
    assert len(said) < 400
