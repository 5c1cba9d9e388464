from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.errors import GoldenError, UsageError
from evaltrack.evaluation.sweep import MAX_BYTES, read_sweep
from tests.files import data

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
    wrong, said = data("sweep_mistakes.json").values()
    with pytest.raises(GoldenError) as caught:
        read_sweep(wrong)
    problems = [each.removeprefix("sweep: ") for each in caught.value.problems]
    assert [each for each in problems if "`settings.filter`" not in each] == said
    assert len(problems) == len(said) + 1


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
