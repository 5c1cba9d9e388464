"""The file of a sweep: what it holds, and that all of its mistakes are one error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.sweep_file import MAX_BYTES, read_sweep

YAML = """\
golden: golden/travel.jsonl
targets:
  - bm25:docs
  - {target: "openai:m", name: naive, settings: {price_in: 0.5, price_out: 1}}
k: [3, 5]
seeds: [1, 2]
settings:
  judge: [none, [a:b, c:d]]
  target_options: {floor: [0, 2.5]}
reference: first
"""
TOML = """\
golden = "golden/travel.jsonl"
targets = ["bm25:docs", {target = "openai:m", name = "naive", settings = {price_in = 0.5, price_out = 1}}]
k = [3, 5]
seeds = [1, 2]
reference = "first"

[settings]
judge = ["none", ["a:b", "c:d"]]
target_options = {floor = [0, 2.5]}
"""


BOMB = "a: &a [1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 6)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Small, and two million values once each alias is written out."""


def write(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_yaml_and_toml_say_the_same(tmp_path: Path) -> None:
    read = [
        read_sweep(write(tmp_path, name, text))
        for name, text in {
            "a.yaml": YAML,
            "b.yml": b"\xef\xbb\xbf" + YAML.encode(),
            "c.toml": TOML,
            "d.toml": b"\xef\xbb\xbf" + TOML.encode(),
        }.items()
    ]
    assert all(each == read[0] for each in read)
    assert [each.target for each in read[0].targets] == ["bm25:docs", "openai:m"]
    assert read_sweep(write(tmp_path, "e.json", '{"golden": "x.jsonl"}')).k == [5]


def test_one_value_is_a_list_of_one() -> None:
    def ask(question: str) -> list[str]:
        return [question]

    sweep = read_sweep({"golden": Path("x.jsonl"), "targets": ask, "k": 3})
    assert (sweep.golden, sweep.targets[0].target, sweep.k) == ("x.jsonl", ask, [3])


def test_all_mistakes_are_one_error() -> None:
    wrong: dict[str, Any] = {
        "golden": 1,
        "k": [0, "x", True],
        "seeds": 1,
        "target": ["a"],
        "settings": {
            "judgee": 1,
            "pass_threshold": [2, "a"],
            "k": 5,
            "trials": [],
            "target_options": 3,
            "run_name": "x",
            "filter": ["what"],
        },
        "targets": [{"targt": "x"}, 5, {"target": "b", "settings": {"alpha": 99, "sample": 3}}],
        "reference": "x",
    }
    with pytest.raises(GoldenError) as caught:
        read_sweep(wrong)
    assert [each.removeprefix("sweep: ") for each in caught.value.problems] == [
        "`golden` is 1; write the path of a golden set",
        "`targets.0.target` is missing; write it",
        "there is no field `targt`; did you mean `target`?",
        "`targets.1` is 5; write targets as of `evaltrack run -t`, or tables of `target`, `name` and `settings`",
        "`k.0` is 0; write a whole number from 1 to 1,000, or a list of such",
        '`k.1` is "x"; write a whole number from 1 to 1,000, or a list of such',
        "`k.2` is true; write a whole number from 1 to 1,000, or a list of such",
        "`seeds` is 1; write a list of whole numbers",
        '`reference` is "x"; write best or first',
        "there is no field `target`; did you mean `targets`?",
        "`settings.judgee`: there is no such setting; did you mean `judge`?",
        "`settings.pass_threshold`: pass_threshold is 2; write a number from 0 to 1",
        "`settings.pass_threshold`: pass_threshold is a; write a number from 0 to 1",
        "`settings.k`: write it outside of `settings`",
        "`settings.trials`: the list is empty; name a value, or leave it out",
        "`settings.target_options`: write a table of the target's own settings",
        "`settings.run_name`: write `name` outside of `settings`",
        *[each.removeprefix("sweep: ") for each in caught.value.problems if "`settings.filter`" in each],
        "`targets.2.settings.alpha`: alpha is 99; write a number from 0 to 10",
        "`targets.2.settings.sample`: it is of the whole sweep; move it up",
    ]
    assert sum("`settings.filter`" in each for each in caught.value.problems) == 1


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "", "holds no table"),
        ("a.yaml", "- a\n- b\n", "holds no table"),
        ("a.yaml", "golden: [", "a.yaml:1: is not YAML"),
        ("a.yaml", "golden: !!python/object:os.system x", "is not YAML"),
        ("a.yaml", b"golden: \xff\xfe", "is not YAML that can be read"),
        ("a.yaml", "[" * 5000, "nested too deep"),
        ("a.yaml", BOMB, "a.yaml"),
        ("a.yaml", "x" * (MAX_BYTES + 1), "is larger than 1,048,576 bytes"),
        ("a.toml", "golden = ", "is not TOML"),
        ("a.toml", b"golden = '\xff'", "is not TOML"),
        ("a.toml", "a = " + "[" * 5000, "is not TOML"),
        ("a.txt", "", "its name ends in .yaml, .yml, .json, .toml"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, name: str, text: str | bytes, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_sweep(write(tmp_path, name, text))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    for name in ("none.yaml", "folder.yaml"):
        with pytest.raises(UsageError, match=name):
            read_sweep(tmp_path / name)
