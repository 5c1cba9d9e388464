"""Verdicts on disk: what was paid for once is there again, for every process, and no broken file stops a run."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evaltrack.judges.cache import FILE, VerdictCache
from evaltrack.records import Usage, Verdict
from evaltrack.system.files import cache_folder
from tests.conftest import REPO, OpenCache
from tests.files import data, put

FULL = Verdict(
    judge="openai:m",
    reasoning="Là: “ça va”. 😀\nNext line.",
    accuracy=0.1,
    completeness=1 / 3,
    relevance=1.0,
    overall_score=0.0,
    usage=Usage(prompt_tokens=30, completion_tokens=40),
)
NEGATIVE = Verdict(judge="j", reasoning="It says so.", declined=False)


def said(text: str) -> Verdict:
    return Verdict(judge="j", reasoning=text, overall_score=0.5)


@pytest.mark.parametrize("verdict", [FULL, NEGATIVE], ids=["full", "negative"])
def test_a_verdict_comes_back(tmp_path: Path, open_cache: OpenCache, verdict: Verdict) -> None:
    cache = open_cache(tmp_path)
    assert cache.get("key") is None
    cache.put("key", verdict)
    assert cache.get("key") == verdict
    cache.close()
    again = open_cache(tmp_path)
    assert again.get("key") == verdict
    assert again.get("Key") is None
    assert (cache.problem, again.problem) == (None, None)


@pytest.mark.parametrize(("variables", "folder"), data("llm.json")["cache_folders"])
def test_the_folder_of_the_user(variables: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable of evaltrack decides, then that of the system, then the home folder; an empty one is none."""
    monkeypatch.setenv("HOME", "/home/user")
    for name in ("EVALTRACK_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(folder)


def test_a_link_of_our_own_is_followed(tmp_path: Path, open_cache: OpenCache) -> None:
    (tmp_path / "disk" / "cache").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "one").symlink_to("../home/two")
    (tmp_path / "home" / "two").symlink_to(tmp_path / "disk")
    cache = open_cache(tmp_path / "home" / "one" / "cache")
    cache.put("key", FULL)
    assert (cache.get("key"), cache.problem) == (FULL, None)
    assert (tmp_path / "disk" / "cache" / FILE).is_file()


def in_a_process(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A process that puts a verdict into a cache, and then does what the code says."""
    put_one = (
        "import os, sys; from pathlib import Path; from evaltrack.judges.cache import VerdictCache\n"
        "from evaltrack.records import Verdict\n"
        "{}\ncache = VerdictCache(Path(sys.argv[1]))\n"
        "cache.put('key', Verdict(judge='j', reasoning='paid', overall_score=0.5))\n{}"
    )
    before, _, after = code.partition("...")
    command = [sys.executable, "-c", put_one.format(before, after), str(folder)]
    return subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=60)


def test_a_system_without_users(tmp_path: Path) -> None:
    """Where Python knows no owners and modes, as on Windows, verdicts are cached all the same."""
    ended = in_a_process("del os.geteuid...print(cache.get('key').reasoning, cache.problem)", tmp_path / "new")
    assert (ended.stdout, ended.stderr) == ("paid None\n", "")


# Several at once


def keep(folder: Path, name: str) -> None:
    os.environ["EVALTRACK_STATE_DIR"] = str(folder / "state")  # to import these tests forgets such variables
    cache = VerdictCache(folder)
    for place in range(200):
        cache.put(f"{name}{place}", said(f"{name}{place}"))
        cache.put("shared", said(name))
        assert cache.get(f"{name}{place}") == said(f"{name}{place}"), cache.problem
    cache.close()


def test_two_processes_at_once(tmp_path: Path, open_cache: OpenCache) -> None:
    started = [multiprocessing.get_context("spawn").Process(target=keep, args=(tmp_path, name)) for name in "ab"]
    for process in started:
        process.start()
    for process in started:
        process.join(60)
    assert [process.exitcode for process in started] == [0, 0]
    cache, keys = open_cache(tmp_path), [f"{name}{place}" for name in "ab" for place in range(200)]
    assert [cache.get(key) for key in keys] == [said(key) for key in keys]
    assert cache.get("shared") in (said("a"), said("b"))


# Where it cannot work


ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="the superuser writes to any folder")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: put(folder / "file", ""), "File exists"),
        (lambda folder: put(folder / "file", "") / "cache", "Not a directory"),
        (lambda folder: ((folder / FILE).mkdir(), folder)[1], "unable to open database file"),
        pytest.param(lambda folder: (folder.chmod(0o500), folder)[1], "Permission denied", marks=ROOT),
        (lambda folder: put(folder / FILE, "no verdicts\n" * 400).parent, "file is not a database"),
        (lambda folder: put(folder / FILE, b"SQLite format 3\0" + b"\xff" * 5000).parent, "file is not a database"),
    ],
)
def test_what_cannot_be_opened_is_an_empty_cache(
    make: Callable[[Path], Path], why: str, tmp_path: Path, open_cache: OpenCache
) -> None:
    folder = make(tmp_path)
    cache = open_cache(folder)
    assert cache.problem is not None
    assert cache.problem.startswith(f"verdicts are not cached: {folder / FILE}: ")
    assert why in cache.problem
    told = cache.problem
    cache.put("key", FULL)
    assert (cache.get("key"), cache.problem) == (None, told)
    cache.close()


def test_a_full_disk_is_an_empty_cache(small_disk: Path, open_cache: OpenCache) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={small_disk / 'filler'}", "bs=512"], capture_output=True)
    cache = open_cache(small_disk)
    assert cache.problem == f"verdicts are not cached: {small_disk / FILE}: database or disk is full"
    (small_disk / "filler").unlink()
    cache = open_cache(small_disk)
    cache.put("key", FULL)
    assert (cache.get("key"), cache.problem) == (FULL, None)


def test_a_file_that_breaks_stops_being_used(tmp_path: Path, open_cache: OpenCache) -> None:
    first = open_cache(tmp_path)
    for number in range(200):
        first.put(f"key{number}", said("x" * 200))
    first.close()
    data = bytearray((tmp_path / FILE).read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    (tmp_path / FILE).write_bytes(data)
    cache = open_cache(tmp_path)
    assert cache.get("key7") is None
    cache.put("key7", FULL)
    assert cache.get("key7") is None
    assert cache.problem == (f"verdicts are no longer cached: {tmp_path / FILE}: database disk image is malformed")


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "[]",
        '{"judge": "j", "reasoning": "r", "overall_score": NaN}',
        '{"judge": "j", "reasoning": "r", "of_a_later_version": 1}',
        b'{"judge": "j", "reasoning": "\xff"}',
        7,
    ],
    ids=repr,
)
def test_an_entry_that_is_no_verdict_is_none(tmp_path: Path, open_cache: OpenCache, entry: str | bytes | int) -> None:
    cache = open_cache(tmp_path)
    cache.put("other", NEGATIVE)
    with sqlite3.connect(tmp_path / FILE) as writer:
        writer.execute("insert into verdicts values ('key', ?)", [entry])
    writer.close()
    assert (cache.get("key"), cache.problem) == (None, None)
    cache.put("key", FULL)
    assert (cache.get("key"), cache.get("other"), cache.problem) == (FULL, NEGATIVE, None)


def test_a_verdict_outlives_a_process_that_is_killed(tmp_path: Path, open_cache: OpenCache) -> None:
    assert in_a_process("...os.kill(os.getpid(), 9)", tmp_path).returncode == -9
    assert open_cache(tmp_path).get("key") == said("paid")
