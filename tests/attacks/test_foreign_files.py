"""Files of others: a cache, journal or folder that somebody else owns shapes no number."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.resume import journals
from evaltrack.judges.cache import FILE, clear_cache
from evaltrack.records import Question, Response, Verdict
from evaltrack.records.row import row_of
from tests.conftest import OpenCache, evaltrack
from tests.judging import cli, golden_set

SOMEBODY = 54321
"""The uid and gid of a user who is not there."""

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
PAID = Verdict(judge="j", reasoning="It is wrong.", overall_score=0.1)


def kept(open_cache: OpenCache, folder: Path, *keys: str) -> None:
    cache = open_cache(folder)
    for key in keys or ("key",):
        cache.put(key, PAID)
    assert cache.problem is None
    cache.close()


def somebody_owns_it(folder: Path) -> None:
    os.chown(folder, SOMEBODY, -1)


def somebody_owns_the_file(folder: Path) -> None:
    os.chown(next(folder.glob("*.sqlite")), SOMEBODY, -1)


def somebody_owns_the_log(folder: Path) -> None:
    log = Path(f"{next(folder.glob('*.sqlite'))}-wal")
    log.touch(0o600)
    os.chown(log, SOMEBODY, -1)


WHY = "belongs to another user"
FOREIGN = [somebody_owns_it, somebody_owns_the_file, somebody_owns_the_log]
foreign = pytest.mark.parametrize("give", FOREIGN, ids=lambda give: give.__name__)


@as_root
@foreign
def test_a_cache_that_others_own_is_not_used(
    give: Callable[[Path], None], tmp_path: Path, open_cache: OpenCache
) -> None:
    folder = tmp_path / "above" / "cache"
    kept(open_cache, folder)
    give(folder)
    cache = open_cache(folder)
    assert cache.get("key") is None
    assert (problem := cache.problem) is not None
    assert problem.startswith("verdicts are not cached: ")
    assert WHY in problem
    assert problem.endswith("set EVALTRACK_STATE_DIR and EVALTRACK_CACHE_DIR to folders of your own")
    cache.put("other", PAID)
    assert cache.get("other") is None


@as_root
@foreign
def test_a_journal_that_others_own_is_not_resumed(
    give: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "above" / "state" / f"{'0' * 32}.sqlite"
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(path.parent))
    journal, question = Journal(path, {"command": "c"}), Question(id="1", question="?", domain="d")
    journal.keep(row_of(question, Response(), 5, trial=1))
    journal.close()
    give(path.parent)
    with pytest.raises(UsageError, match=WHY):
        Journal(path, {"command": "c"})
    assert list(journals()) == []


@as_root
@pytest.mark.parametrize("resume", [True, False])
def test_a_run_with_a_state_folder_of_another_user(
    store_uri: str, tmp_path: Path, resume: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "state").mkdir()
    somebody_owns_it(tmp_path / "state")
    golden, target = golden_set(tmp_path / "golden", {"a": "I do not know."}, expected_chunks=[])
    more = ["--resume", "auto"] if resume else []
    assert cli("run", golden, "-t", target, "--output", "json", *more) == 0
    told = "\n".join(json.loads(capfd.readouterr().out)["notes"])
    place = tmp_path / "state"
    assert f"{place}: belongs to another user (uid {SOMEBODY}), and is not used; set EVALTRACK_STATE_DIR" in told
    assert list(place.iterdir()) == []


def modes(*paths: Path) -> dict[str, str]:
    return {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in paths}


def test_nobody_else_reads_verdicts(tmp_path: Path, open_cache: OpenCache) -> None:
    """Also if the file was opened to others before."""
    before = os.umask(0)
    try:
        cache = open_cache(tmp_path / "some" / "where")
        cache.put("key", PAID)
        folders = [tmp_path / name for name in ("some", "some/where")]
        found = modes(*folders, *(path for folder in folders for path in folder.iterdir()))
    finally:
        os.umask(before)
    assert found == {**dict.fromkeys(("some", "where"), "0o700"), FILE: "0o600"}
    tmp_path.chmod(0o755)
    (tmp_path / FILE).touch(0o644)
    kept(open_cache, tmp_path)
    assert modes(tmp_path, tmp_path / FILE) == {tmp_path.name: "0o755", FILE: "0o600"}


def test_the_cache_can_be_cleared(tmp_path: Path, open_cache: OpenCache) -> None:
    folder = tmp_path / "cache"
    kept(open_cache, folder, "one", "two")
    (folder / "mine.txt").write_text("not ours")
    cleared = evaltrack("cache", "clear", cwd=tmp_path)
    assert cleared.returncode == 0, cleared.stderr
    assert cleared.stdout == f"{folder}: holds no verdicts now\n"
    assert [each.name for each in folder.iterdir()] == ["mine.txt"]
    assert evaltrack("cache", "clear", cwd=tmp_path).returncode == 0
    (folder / FILE).write_text("damaged\n")
    assert evaltrack("cache", "clear", cwd=tmp_path).returncode == 0
    assert not (folder / FILE).exists()


@as_root
def test_a_cache_of_others_is_not_cleared(tmp_path: Path, open_cache: OpenCache) -> None:
    cache = open_cache(tmp_path / "cache")
    cache.put("key", PAID)
    cache.close()
    somebody_owns_the_file(tmp_path / "cache")
    cleared = evaltrack("cache", "clear", "--yes", cwd=tmp_path)
    assert cleared.returncode == 2
    assert WHY in cleared.stderr
    assert (tmp_path / "cache" / FILE).exists()


def test_a_cache_that_is_cleared_while_it_is_open_stores_no_more_and_harms_no_new_one(
    tmp_path: Path, open_cache: OpenCache
) -> None:
    cache = open_cache(tmp_path)
    cache.put("key", PAID)
    clear_cache(tmp_path)
    new = open_cache(tmp_path)
    new.put("other", PAID)
    cache.put("late", PAID)
    assert (cache.problem or "").startswith("verdicts are no longer cached: ")
    assert [new.get(key) for key in ("key", "other", "late")] == [None, PAID, None]
