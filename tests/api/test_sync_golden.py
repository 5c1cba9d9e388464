"""A golden set in step with an MLflow evaluation dataset, on a real store and on a real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import GoldenSync, open_golden, pull_golden, push_golden
from evaltrack.api import sync_golden as module
from evaltrack.errors import GoldenError, TrackingError, UsageError
from evaltrack.golden.exchange.mlflow_records import DatasetRecord
from evaltrack.tracking.dataset_records import Dataset, find_dataset, read_records
from evaltrack.tracking.store import connect

LINES = (
    '{"id": 1, "question": "first?", "expected_chunks": [5, "b"], "expected_answer": "yes"}',
    '{ "id":"007",  "question":"second?", "expected_chunks": [], "notes": "n", "draft": true }',
    '{"id": "c", "question": "first?", "expected_tools": ["search"], "metadata": {"e": 1.5}, "domain": "other"}',
)


@pytest.fixture
def golden(store_uri: str, tmp_path: Path) -> Path:
    """A small golden set, and an empty store."""
    assert store_uri
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def kinds(made: GoldenSync) -> dict[str, str]:
    """What became of each question that differs: `kind side`, with `!` where it was carried over."""
    return {each.id: f"{each.kind} {each.side}{'!' * each.is_done}" for each in made.changes}


def questions(path: Path) -> list[Any]:
    """All questions of a file."""
    return list(open_golden(path, drafts=True))


def dataset(name: str = "mine") -> mlflow.genai.datasets.EvaluationDataset:
    """The dataset, by MLflow's own function."""
    return mlflow.genai.datasets.get_dataset(name=name)


def records() -> list[DatasetRecord]:
    """What the dataset holds."""
    return read_records(connect(), Dataset(dataset().dataset_id, "mine"))


def edit(question: str, **expectations: Any) -> None:
    """What a person does in MLflow's page."""
    dataset().merge_records([{"inputs": {"question": question}, "expectations": expectations}])


def rewrite(path: Path, old: str, new: str) -> None:
    """Edit the file by hand."""
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def on_another_machine(monkeypatch: pytest.MonkeyPatch, name: str = "elsewhere") -> None:
    """From now on nothing is known of earlier pushes and pulls."""
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(Path.cwd() / name))


def test_every_field_makes_the_round_trip(golden: Path, tmp_path: Path) -> None:
    """Pushed, and pulled into a new file: the same questions in the same order with the same digests."""
    assert kinds(push_golden(golden)) == {"1": "added file!", "007": "added file!", "c": "added file!"}
    new = tmp_path / "new" / "mine.jsonl"
    assert pull_golden("mine", new).questions == 3
    assert questions(new) == questions(golden)
    assert open_golden(new).digest == open_golden(golden).digest
    assert [json.loads(line)["id"] for line in new.read_text(encoding="utf-8").splitlines()] == ["1", "007", "c"]
    other = tmp_path / "renamed.json"
    pull_golden("mine", other)
    assert questions(other) == questions(golden)


def test_a_second_push_writes_nothing(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a dry run ever, which says what would change."""
    assert push_golden(golden, dry_run=True).dataset_id == ""
    assert find_dataset(connect(), "0", "mine") is None
    push_golden(golden)
    before = dataset().to_df()
    monkeypatch.setattr(module, "write_records", lambda _store, _dataset, records: records and pytest.fail("written"))
    monkeypatch.setattr(module, "delete_records", lambda *_: pytest.fail("deleted"))
    assert push_golden(golden).changes == ()
    rewrite(golden, "yes", "no")
    assert kinds(push_golden(golden, dry_run=True)) == {"1": "changed file!"}
    assert dataset().to_df().equals(before)


def test_changes_in_the_file_are_pushed(golden: Path) -> None:
    """Fields that are less and words that are others too; a removed question is listed until it is pruned."""
    push_golden(golden)
    edit("second?", guidelines="be kind")
    rewrite(golden, ', "expected_answer": "yes"', "")
    rewrite(golden, "second?", "second and a half?")
    rewrite(golden, LINES[2], '{"id": "d", "question": "fourth?"}')
    made = push_golden(golden)
    assert kinds(made) == {"1": "changed file!", "007": "changed file!", "d": "added file!", "c": "removed file"}
    assert [each.fields for each in made.changes] == [("expected_answer",), ("question",), (), ()]
    assert made.notes == ("`guidelines` has no field in a golden set; it stays in MLflow (1)",)
    assert kinds(push_golden(golden, dry_run=True, prune=True)) == {"c": "removed file!"}
    assert kinds(push_golden(golden, prune=True)) == {"c": "removed file!"}
    held = {each.text: each for each in records()}
    assert set(held) == {"first?", "second and a half?", "fourth?"}
    assert held["first?"].expectations == {"expected_chunks": ["5", "b"]}
    assert held["second and a half?"].expectations == {"expected_chunks": [], "guidelines": "be kind"}
    assert push_golden(golden).changes == ()


def test_changes_in_mlflow_are_pulled_into_their_lines(golden: Path) -> None:
    """Every other byte stays: blanks, the order of fields, and ids that are numbers."""
    push_golden(golden)
    edit("first?", expected_response="no", expected_chunks=["5", "x"])
    before = dataset().to_df()
    made = pull_golden("mine", golden, dry_run=True)
    assert kinds(made) == {"1": "changed dataset!"}
    assert golden.read_text(encoding="utf-8") == "\n".join(LINES) + "\n"
    assert set(pull_golden("mine", golden).changes[0].fields) == {"expected_answer", "expected_chunks"}
    lines = golden.read_text(encoding="utf-8").splitlines()
    assert lines[0] == '{"id": 1, "question": "first?", "expected_chunks": [5, "x"], "expected_answer": "no"}'
    assert lines[1:] == list(LINES[1:])
    assert dataset().to_df().equals(before)
    assert pull_golden("mine", golden).changes == ()
    rewrite(golden, '"no"', '"never"')
    assert kinds(push_golden(golden)) == {"1": "changed file!"}


def test_what_both_changed_is_a_conflict(golden: Path) -> None:
    """Neither side is written over, until one is said to decide; the other questions are carried over."""
    push_golden(golden)
    edit("first?", expected_response="from MLflow")
    rewrite(golden, "yes", "from the file")
    rewrite(golden, '"n"', '"notes"')
    made = push_golden(golden)
    assert (kinds(made), made.conflicts) == ({"1": "conflict both", "007": "changed file!"}, 1)
    assert (kinds(pull_golden("mine", golden)), made.changes[0].fields) == (
        {"1": "conflict both"},
        ("expected_answer",),
    )
    assert "from MLflow" in [each.expectations.get("expected_response") for each in records()]
    assert "from the file" in golden.read_text(encoding="utf-8")
    assert push_golden(golden).conflicts == 1
    decided = pull_golden("mine", golden, force=True)
    assert (kinds(decided), decided.conflicts) == ({"1": "conflict both!"}, 0)
    assert questions(golden)[0].expected_answer == "from MLflow"
    assert push_golden(golden).changes == ()


def test_the_file_may_decide(golden: Path) -> None:
    """With a push; nobody's change is left over."""
    push_golden(golden)
    edit("first?", expected_response="from MLflow")
    rewrite(golden, "yes", "from the file")
    assert push_golden(golden, force=True).conflicts == 0
    assert pull_golden("mine", golden).changes == ()
    assert questions(golden)[0].expected_answer == "from the file"


def test_two_people_with_two_files(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who edits an older version is told of a conflict; who only has it, that the dataset is newer."""
    push_golden(golden)
    theirs = tmp_path / "theirs" / "mine.jsonl"
    old = tmp_path / "old" / "mine.jsonl"
    for path in (theirs, old):
        on_another_machine(monkeypatch, path.parent.name)
        pull_golden("mine", path)
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))
    rewrite(golden, "yes", "version 2")
    push_golden(golden)
    on_another_machine(monkeypatch, "theirs")
    rewrite(theirs, "yes", "version 2 of theirs")
    assert kinds(push_golden(theirs)) == {"1": "conflict both"}
    for machine in ("old", "a third"):  # the second knows nothing of a pull
        on_another_machine(monkeypatch, machine)
        assert kinds(push_golden(old)) == {"1": "changed dataset"}
    assert kinds(pull_golden("mine", old)) == {"1": "changed dataset!"}


def test_a_new_machine_pushes_and_prunes(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CI does after a merge: an edited and a removed question of a set that another machine pushed."""
    push_golden(golden)
    on_another_machine(monkeypatch)
    rewrite(golden, "yes", "no")
    rewrite(golden, LINES[2] + "\n", "")
    assert kinds(push_golden(golden, dry_run=True)) == {"1": "changed file!", "c": "added dataset"}
    assert kinds(push_golden(golden, prune=True)) == {"1": "changed file!", "c": "removed file!"}


def test_questions_are_added_and_removed_by_a_pull(golden: Path) -> None:
    """Those that a person made get an id that stays; those that are gone are listed until they are pruned."""
    push_golden(golden)
    edit("from a person?", expected_response="a")
    (record,) = [each for each in records() if each.text == "from a person?"]
    (gone,) = [each for each in records() if each.text == "second?"]
    dataset().delete_records([gone.key])
    key = f"mlflow-{record.key[3:11]}"
    made = pull_golden("mine", golden)
    assert kinds(made) == {"007": "removed dataset", key: "added dataset!"}
    assert made.notes == (f"record {record.key} was made in MLflow; its question is `{key}`",)
    assert kinds(push_golden(golden)) == {"007": "removed dataset"}
    assert kinds(pull_golden("mine", golden, prune=True)) == {"007": "removed dataset!"}
    lines = golden.read_text(encoding="utf-8").splitlines()
    assert lines[:2] == [LINES[0], LINES[2]]
    assert json.loads(lines[2]) == {"id": key, "question": "from a person?", "expected_answer": "a"}
    rewrite(golden, "from a person?", "from a person, reworded?")
    assert kinds(push_golden(golden)) == {key: "changed file!"}
    assert {each.text for each in records()} == {"first?", "from a person, reworded?"}


def test_a_copy_in_mlflow_is_a_question_of_its_own(golden: Path) -> None:
    """A person who rewords a record in MLflow's page makes another one with the same tags."""
    push_golden(golden)
    (record,) = [each for each in records() if each.text == "second?"]
    dataset().merge_records([{"inputs": {"question": "reworded?"}, "tags": dict(record.tags)}])
    assert sorted(kinds(pull_golden("mine", golden)).values()) == ["added dataset!"]
    assert [each.question for each in questions(golden)] == ["first?", "second?", "first?", "reworded?"]
    assert push_golden(golden).changes == ()


def test_a_record_that_asks_the_same_is_the_question(golden: Path) -> None:
    """One that a person made before the first push is no second question; what differs is a conflict."""
    mlflow.genai.datasets.create_dataset("mine", "0").merge_records([{"inputs": {"question": "second?"}}])
    assert kinds(push_golden(golden))["007"] == "conflict both"
    assert push_golden(golden, force=True).conflicts == 0
    assert len(records()) == 3


def test_a_kill_loses_no_question(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the removal of records and their new versions: the next push writes them."""
    push_golden(golden)
    rewrite(golden, ', "expected_answer": "yes"', "")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "write_records", killed)
        with pytest.raises(KeyboardInterrupt):
            push_golden(golden)
    assert len(records()) == 2
    assert kinds(push_golden(golden)) == {"1": "added file!"}
    assert len(records()) == 3


@pytest.mark.filterwarnings("ignore:.*Any type hint")
def test_mlflow_evaluates_what_was_pushed(golden: Path) -> None:
    """The question is the argument of the function, and a scorer gets the expectations."""

    @mlflow.genai.scorer
    def is_expected(outputs: str, expectations: dict[str, Any]) -> bool:
        return outputs == expectations.get("expected_response")

    rewrite(golden, LINES[2] + "\n", "")
    push_golden(golden)
    made = mlflow.genai.evaluate(
        data=dataset(), predict_fn=lambda question: "yes" if question == "first?" else "", scorers=[is_expected]
    )
    assert made.metrics == {"is_expected/mean": 0.5}


def test_errors_say_what_and_how(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing dataset, one of two, bad records (all of them), a name that is no file, a store without datasets."""
    with pytest.raises(UsageError, match="no dataset `mine` in the experiment; it has none; push a golden set first"):
        pull_golden("mine")
    push_golden(golden)
    with pytest.raises(UsageError, match=r"no dataset `mime` in the experiment; did you mean `mine`\?"):
        pull_golden("mime")
    with pytest.raises(UsageError, match="another experiment has one; name it with `experiment=`"):
        pull_golden("mine", experiment="second")
    push_golden(golden, "a/b")
    with pytest.raises(UsageError, match="is no name of a file; name the file too"):
        pull_golden("a/b")
    with pytest.raises(UsageError, match=r"a golden set is a \.jsonl file"):
        pull_golden("mine", tmp_path / "mine.csv")
    dataset().merge_records([{"inputs": {"n": 1}}, {"inputs": {"question": "bad?"}, "tags": {"draft": "{"}}])
    assert len(push_golden(golden).notes) == 2
    mlflow.genai.datasets.create_dataset("mine", "0")
    with pytest.raises(UsageError, match="2 datasets are called `mine`: d-"):
        push_golden(golden)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    with pytest.raises(TrackingError, match=r"not supported with FileStore\. This feature requires a SQL-based"):
        push_golden(golden, tracking_uri=str(tmp_path / "mlruns"))


def test_bad_records_are_left_and_the_others_pulled(golden: Path, tmp_path: Path) -> None:
    """A note names each with its problem; what the file has of it stays, even where removed questions are pruned."""
    push_golden(golden)
    edit("second?", expected_chunks="not-a-list")
    edit("third?", expected_chunks=["z"])
    dataset().merge_records([{"inputs": {"n": 1}}])
    made = pull_golden("mine", golden, prune=True)
    assert [each.question for each in questions(golden)] == ["first?", "second?", "first?", "third?"]
    assert LINES[1] in golden.read_text(encoding="utf-8")
    assert [each.is_done for each in made.changes] == [True]
    bad = [note for note in made.notes if "holds no question: " in note]
    assert (len(bad), len(made.invalid), made.invalid[0]) == (2, 2, "007")
    assert "expected_chunks" in bad[0]
    with pytest.raises(GoldenError, match="expected_chunks"):
        push_golden(golden)
    edit("second?", expected_chunks=["w"])
    assert kinds(pull_golden("mine", golden)) == {"007": "changed dataset!"}
    edit("first?", expected_response=5)
    assert [each.question for each in questions(pull_golden("mine", tmp_path / "new.jsonl").path)][-1] == "third?"


def test_a_file_that_changes_meanwhile_stays(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What somebody else wrote between reading and writing is not lost."""
    push_golden(golden)
    edit("first?", expected_response="no")
    read = module.read_pair

    def slow(*args: Any, **kwargs: Any) -> Any:
        rewrite(golden, '"n"', '"a note"')
        return read(*args, **kwargs)

    monkeypatch.setattr(module, "read_pair", slow)
    with pytest.raises(GoldenError, match="was changed at the same moment; do it once more"):
        pull_golden("mine", golden)
    assert "a note" in golden.read_text(encoding="utf-8")


def test_a_state_that_cannot_be_used_is_a_note(golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known then, as on another machine; a damaged one counts as none."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "file"))
    assert "what is in step is not noted on this machine" in push_golden(golden).notes[0]
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))
    push_golden(golden)
    (state,) = (tmp_path / "state" / "datasets").iterdir()
    state.write_text("[1]")
    assert push_golden(golden).changes == ()


def test_a_server_takes_it_too(server: str, golden: Path, tmp_path: Path) -> None:
    """Through its API: pushed, changed, pruned and pulled."""
    options = {"tracking_uri": server, "experiment": "in step"}
    push_golden(golden, **options)  # type: ignore[arg-type]
    rewrite(golden, ', "expected_answer": "yes"', "")
    rewrite(golden, LINES[2] + "\n", "")
    assert kinds(push_golden(golden, prune=True, **options)) == {"1": "changed file!", "c": "removed file!"}  # type: ignore[arg-type]
    new = tmp_path / "new" / "mine.jsonl"
    pull_golden("mine", new, **options)  # type: ignore[arg-type]
    assert questions(new) == questions(golden)
