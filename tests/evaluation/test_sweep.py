from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.sweep import MAX_CONFIGURATIONS, SweepPlan, plan_sweep, read_sweep
from tests.files import data, put

YAML = """\
golden: golden/travel.jsonl
targets:
  - bm25:docs
  - {target: "openai:m", name: naive, settings: {price_in: 0.5, price_out: 1}}
k: [3, 5]
settings:
  judge: [none, [a:b, c:d]]
  target_options: {floor: [0, 2.5]}
reference: first
"""
TOML = """\
golden = "golden/travel.jsonl"
targets = ["bm25:docs", {target = "openai:m", name = "naive", settings = {price_in = 0.5, price_out = 1}}]
k = [3, 5]
reference = "first"

[settings]
judge = ["none", ["a:b", "c:d"]]
target_options = {floor = [0, 2.5]}
"""


BOMB = "a: &a [1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 6)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Small, and two million values once each alias is written out."""


def test_yaml_and_toml_say_the_same(tmp_path: Path) -> None:
    forms = {"a.yaml": YAML, "b.yml": "\ufeff" + YAML, "c.toml": TOML, "d.toml": "\ufeff" + TOML}
    read = [read_sweep(put(tmp_path / name, text)) for name, text in forms.items()]
    assert all(each == read[0] for each in read)
    assert [each.target for each in read[0].targets] == ["bm25:docs", "openai:m"]
    assert read_sweep(put(tmp_path / "e.json", {"golden": "x.jsonl"})).k == [5]


def test_one_value_is_a_list_of_one() -> None:
    def ask(question: str) -> list[str]:
        return [question]

    sweep = read_sweep({"golden": Path("x.jsonl"), "targets": ask, "k": 3})
    assert (sweep.golden, sweep.targets[0].target, sweep.k) == ("x.jsonl", ask, [3])


def test_all_mistakes_are_one_error() -> None:
    wrong, said = data("sweep_mistakes.json").values()
    with pytest.raises(GoldenError) as caught:
        read_sweep(wrong)
    problems = [each.removeprefix("sweep: ") for each in caught.value.problems]
    assert problems == said


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "is not a table"),
        ("a.yaml", "- a\n- b\n", "is not a table"),
        ("a.yaml", "golden: [", "a.yaml:1: is not YAML"),
        ("a.yaml", "golden: !!python/object:os.system x", "is not YAML"),
        ("a.yaml", b"golden: \xff\xfe", "cannot be read as YAML"),
        ("a.yaml", "[" * 5000, "nested too deep"),
        ("a.yaml", BOMB, "a.yaml"),
        ("a.toml", "golden = ", "is not TOML"),
        ("a.toml", b"golden = '\xff'", "is not TOML"),
        (
            "a.json",
            r'{"golden": "g.jsonl", "targets": [{"target": "bm25:docs", "name": "\ud800"}]}',
            "half of a surrogate",
        ),
        ("a.txt", "", "its name must end in .yaml, .yml, .json, .toml"),
        ("none.yaml", None, "none.yaml"),
        ("folder.yaml", None, "folder.yaml"),
    ],
)
def test_a_file_that_is_no_sweep(tmp_path: Path, name: str, text: str | bytes | None, message: str) -> None:
    (tmp_path / "folder.yaml").mkdir()
    path = tmp_path / name if text is None else put(tmp_path / name, text)
    with pytest.raises(UsageError, match=message):
        read_sweep(path)


@pytest.fixture
def golden(tmp_path: Path) -> Path:
    lines = [
        {"id": 1, "question": "One?", "expected_chunks": ["a"]},
        {"id": 2, "question": "Two?", "expected_chunks": ["b"]},
    ]
    return put(tmp_path / "set.jsonl", lines)


def ask(question: str, k: int) -> list[str]:
    return ["a"]


def plan(golden: Path, **fields: Any) -> SweepPlan:
    return plan_sweep(read_sweep({"golden": golden, "targets": [ask], **fields}))


def test_each_value_of_each_list_meets_every_other(golden: Path) -> None:
    made = plan(
        golden,
        targets=[{"target": ask, "name": "mine"}, {"target": ask, "name": "dear", "settings": {"trials": 3}}],
        k=[3, 5],
        settings={"judge": "none", "pass_threshold": [0.5, 0.75], "redact": ["a", "b"]},
    )
    assert [each.name for each in made.configurations] == [
        f"{name} k={k} pass_threshold={threshold}{trials}"
        for name, trials in (("mine", ""), ("dear", " trials=3"))
        for k in (3, 5)
        for threshold in (0.5, 0.75)
    ]
    last = made.configurations[-1]
    assert (last.settings.k, last.settings.pass_threshold, last.settings.trials) == (5, 0.75, 3)
    assert last.settings.redact == ("a", "b")  # a list of the whole sweep is no list of values to try
    assert last.axes == {"target": "dear", "k": "5", "pass_threshold": "0.75", "trials": "3"}
    assert [made.target_calls(each) for each in made.configurations] == [2] * 4 + [6] * 4
    assert {made.judge_calls(each) for each in made.configurations} == {0}


def test_judges_are_counted_and_a_panel_is_a_list_in_a_list(golden: Path, tmp_path: Path) -> None:
    for name in "ab":
        scores = dict.fromkeys(("overall_score", "accuracy", "completeness", "relevance"), 1)
        put(tmp_path / f"{name}.jsonl", [{"id": n, "judge": name, "reasoning": "r", **scores} for n in (1, 2)])
    (tmp_path / "plain.jsonl").write_text('{"id": 1, "question": "One?", "expected_chunks": ["a"]}\n')
    judges = [f"recorded:{tmp_path}/{name}.jsonl" for name in "ab"]
    made = plan(tmp_path / "plain.jsonl", settings={"judge": ["none", judges[0], judges]})
    assert [made.judge_calls(each) for each in made.configurations] == [0, 1, 2]
    assert made.configurations[2].settings.judge == tuple(judges)


def test_options_of_the_target_are_texts(golden: Path) -> None:
    options = {"answer": "s", "model": ["a", True]}
    made = plan(golden, targets=["http://127.0.0.1:9/ask"], settings={"target_options": options})
    assert made.configurations[1].settings.target_options == {"answer": "s", "model": "true"}
    assert [each.name for each in made.configurations] == ["target.model=a", "target.model=true"]


def test_a_digest_tells_what_is_evaluated_and_nothing_else(golden: Path) -> None:
    same = [plan(golden, k=[3, 5], settings=settings) for settings in ({}, {"concurrency": 2})]
    same.append(plan(golden, k=[5, 3], name="other"))
    assert len({frozenset(each.digests) for each in same}) == 1
    others = [plan(golden, k=[3, 4]), plan(golden, k=[3, 5], settings={"pass_threshold": 0.1})]
    golden.write_text(golden.read_text().replace("One?", "Another one?"))
    others.append(plan(golden, k=[3, 5]))
    assert len({frozenset(each.digests) for each in (same[0], *others)}) == 4
    assert set(same[0].digests) & set(others[0].digests)  # k = 3 is in both


def test_all_that_is_wrong_is_one_error(golden: Path, tmp_path: Path) -> None:
    golden.write_text(golden.read_text() + '{"id": 3}\n')
    with pytest.raises(GoldenError) as caught:
        plan(golden, k=[3, 3], settings={"price_in": 1})
    assert [each.replace(f"{tmp_path}/", "") for each in caught.value.problems] == [
        "sweep: prices of the target: give the price of input and of output, or neither",
        "set.jsonl:3: `question` is missing; write it",
    ]
    good = tmp_path / "good.jsonl"
    with pytest.raises(GoldenError) as caught:
        plan(golden, settings={"trials": 0, "pass_threshold": [1, 2]})
    assert caught.value.problems[:2] == (
        "sweep: trials must be a whole number from 1 to 1000, not `0`",
        "sweep: pass_threshold must be a number from 0 to 1, not `2`",
    )
    good.write_text('{"id": 1, "question": "One?", "expected_chunks": ["a"]}\n')
    with pytest.raises(GoldenError) as caught:
        plan(good, targets=["bm25:none", "bm26:x", f"bm25:{tmp_path}?k1=2"], k=[3, 5])
    assert [each.partition(";")[0] for each in caught.value.problems] == [
        "corpus folder `none` does not exist",
        "unknown target `bm26:x`",
        "bm25 target: unknown setting `k1`",
    ]
    with pytest.raises(GoldenError, match="2 configurations appear twice, such as `k=3`"):
        plan(good, k=[3, 3, 5, 5])


def test_what_cannot_be_is_refused(golden: Path, tmp_path: Path) -> None:
    with pytest.raises(GoldenError, match=r"none\.jsonl: no such file"):
        plan(tmp_path / "none.jsonl")
    with pytest.raises(
        GoldenError, match=f"its lists make 300 configurations; a sweep has {MAX_CONFIGURATIONS} at most"
    ):
        plan(golden, k=list(range(1, 301)))
    with pytest.raises(GoldenError, match=r"target options \(floor\) need a named target"):
        plan(golden, settings={"target_options": {"floor": 1}})
