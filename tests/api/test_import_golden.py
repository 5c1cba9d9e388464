from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any

import pytest

from evaltrack import open_golden, run_eval
from evaltrack.api.import_golden import import_golden
from evaltrack.cli import _run
from evaltrack.errors import GoldenError, UsageError
from tests.files import data, put
from tests.metrics.test_collections import DATA, text_of, with_data


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = [f"question {n},{'[]' if n > 10 else f'c{n}'}\n" for n in range(1, 13)]
    return put(tmp_path / "mine.csv", "question,expected_chunks\n" + "".join(rows))


def test_the_written_set_is_clean(table: Path, tmp_path: Path) -> None:
    made = import_golden(table, tmp_path / "new/mine.jsonl")
    assert _run(["golden", "lint", "--strict", str(made.path)]) == 0
    assert (made.questions, made.negatives, made.notes) == (12, 2, ())
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["mine.jsonl"]


def test_only_a_whole_set_replaces_what_is_there(table: Path, tmp_path: Path) -> None:
    there = put(tmp_path / "there.jsonl", "precious\n")
    with pytest.raises(GoldenError, match=r"bad.csv:3: has no question"):
        import_golden(put(tmp_path / "bad.csv", "question,notes\na,\n,b\n"), there, force=True)
    assert there.read_text() == "precious\n"
    import_golden(table, there, force=True)
    assert len(open_golden(there)) == 12


@pytest.mark.parametrize(("options", "message"), data("api.json")["what_is_refused"])
def test_what_is_refused(
    table: Path, tmp_path: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.jsonl").mkdir()
    put(tmp_path / "bad.jsonl", '{"_id": "a", "text": "t"}\nno\n{"text": "without id"}\n\n')
    put(tmp_path / "blank.jsonl", "\n")
    arguments = {"files": table, "output": "out.jsonl", "force": True, **options}
    with pytest.raises(UsageError) as raised:
        import_golden(**arguments)
    assert message in str(raised.value)
    assert not list(tmp_path.rglob(".*.jsonl"))


@with_data
@pytest.mark.parametrize(("collection", "questions"), [("adi", 35), ("cranfield", 225), ("vaswani", 93)])
def test_collections_evaluate_at_once(store_uri: str, tmp_path: Path, collection: str, questions: int) -> None:
    folder = DATA / "collections" / collection
    corpus = put(tmp_path / "corpus.jsonl", gzip.decompress((folder / "corpus.jsonl.gz").read_bytes()))
    files = [folder / "queries.jsonl", folder / "qrels.trec"]
    made = import_golden(files, tmp_path / f"{collection}.jsonl", corpus=corpus)
    assert (made.form, made.questions, made.negatives, made.judged_only) == ("trec", questions, 0, 0)
    assert not [note for note in made.notes if "corpus" in note]
    run = put(tmp_path / "bm25.run", text_of(folder / "bm25_porter.run"))
    result = run_eval(made.path, k=5, target=f"recorded:{run}", traces="off", tracking_uri=store_uri)
    published = csv.DictReader(
        gzip.decompress((folder / "expected_bm25_porter.perquery.csv.gz").read_bytes()).decode().splitlines()
    )
    recalls = [float(line["recall_5"]) for line in published]
    assert result.data["recall_at_k"] == pytest.approx(sum(recalls) / questions, abs=1e-6)
