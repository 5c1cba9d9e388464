"""Files of results that cannot be read, and hostile ones."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tests.files import put

from .recordings import DATA, ask, opened, refusal


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[]", "recorded target a.json: holds no results"),
        ("a.json", "[1]", "a.json: [1]: is a number; a result is a JSON object"),
        ("a.json", "[", "a.json: is not JSON"),
        ("a.json", '{\n"a": 1}', "is an object without a list of results (results.results, results, testCases"),
        ("a.json", '{\n"results": []}', "holds no results"),
        ("a.csv", "", "is empty"),
        ("a.csv", "user_input,response\n", "holds no results"),
        ("a.csv", "user_input,response\nq,a,b\n", "a.csv:2: has 3 cells, but the header has 2"),
        ("a.parquet", b"PAR1 and no more", "cannot be read as Parquet"),
        ("a.eval", b"PK\x03\x04 and no more", "is a damaged ZIP file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    """The place, what is wrong, and the cure."""
    assert message in refusal(put(tmp_path / name, content))


def test_lines_that_are_no_json_are_listed(tmp_path: Path) -> None:
    """With the number of each."""
    lines = '{"user_input": "q", "response": "a"}\n{"user_input"\n\n[]\n'
    said = refusal(put(tmp_path / "a.jsonl", lines)).splitlines()
    assert (
        said[0] == "a.jsonl:2: is not JSON: it ends inside an object at column 13; close it with `}` on the same line"
    )
    assert said[1:] == ["a.jsonl:4: is an array; a result is a JSON object"]


def test_a_byte_order_mark_and_foreign_letters(tmp_path: Path) -> None:
    """Are simply read, in each form of text."""
    for name, content in (
        ("a.csv", "\ufeffuser_input,response,retrieved_contexts\nOù?,là,\"['très loin', 'près']\"\n"),
        ("a.jsonl", '\ufeff{"user_input": "Où?", "response": "là"}\n'),
        ("a.json", '\ufeff[{"user_input": "Où?", "response": "là"}]'),
    ):
        assert ask(opened(put(tmp_path / name, content)), "1", "OÙ?").answer == "là"


def test_a_log_that_is_none_or_holds_no_samples(tmp_path: Path) -> None:
    """A ZIP file of another kind, and a log whose task never began."""
    for parts, message in (
        (["a.txt"], "is a ZIP file, and no log of Inspect"),
        (["header.json"], "this log of Inspect holds no samples"),
    ):
        with zipfile.ZipFile(tmp_path / "a.eval", "w") as packed:
            for part in parts:
                packed.writestr(part, "{}")
        assert message in refusal(tmp_path / "a.eval")


def test_a_log_with_a_damaged_sample(tmp_path: Path) -> None:
    """Is refused with the place of the sample; deflated parts are read as well."""
    with zipfile.ZipFile(tmp_path / "a.eval", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("header.json", "{}")
        packed.writestr("samples/1_epoch_1.json", '{"id": 1, "epoch": 1, "input": "q", "output": {"choices": [1]}}')
        packed.writestr("samples/2_epoch_1.json", "{")
    assert refusal(tmp_path / "a.eval").startswith("a.eval: samples/2_epoch_1.json: cannot be read: EOF")


def test_a_log_whose_packed_samples_are_cut(tmp_path: Path) -> None:
    """What Zstandard cannot unpack is an error with its place, and never half a sample."""
    raw = bytearray((DATA / "inspect_log.eval").read_bytes())
    start = raw.index(b"samples/1_epoch_1.json") + 60
    raw[start : start + 40] = bytes(40)
    assert refusal(put(tmp_path / "a.eval", bytes(raw))).startswith("a.eval: samples/1_epoch_1.json: cannot be read: ")


def test_a_sample_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes cannot fill the memory: each sample is bounded, and all of them together."""
    monkeypatch.setattr("evaltrack.golden.exchange.log_archive.MAX_SAMPLE_BYTES", 100)
    assert "is larger than 100 bytes unpacked" in refusal(DATA / "inspect_log.eval")
    monkeypatch.setattr("evaltrack.golden.exchange.log_archive.MAX_LOG_BYTES", 100)
    assert "unpacks to more than 100 bytes; split it" in refusal(DATA / "inspect_log.eval")


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is refused with its number."""
    path = put(tmp_path / "a.jsonl", [{"user_input": "q", "response": "a"}, {"user_input": "r", "response": "a" * 200}])
    monkeypatch.setattr("evaltrack.targets.results.files.MAX_LINE_BYTES", 100)
    assert "a.jsonl:2: is longer than 100 bytes" in refusal(path)


def test_deeply_nested_json_is_an_error(tmp_path: Path) -> None:
    """And no crash."""
    assert "is not JSON" in refusal(put(tmp_path / "a.json", "[" * 100_000))


def test_a_sample_of_another_length_than_the_log_says(tmp_path: Path) -> None:
    """Is refused: what was unpacked may be half of it."""
    raw = bytearray((DATA / "inspect_log.eval").read_bytes())
    entry = raw.index(b"PK\x01\x02", raw.rindex(b"samples/1_epoch_1.json") - 50)
    size = int.from_bytes(raw[entry + 24 : entry + 28], "little")
    raw[entry + 24 : entry + 28] = (size + 7).to_bytes(4, "little")
    assert refusal(put(tmp_path / "a.eval", bytes(raw))).endswith("its length is not the one that the ZIP file says")
