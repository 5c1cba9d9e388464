from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from .conftest import REPO

EXEMPT = {"mlproject.sh": "its words are those of `evaltrack run`, which MLflow gives it"}
SCRIPTS = sorted(
    path.name for path in (REPO / "scripts").iterdir() if path.is_file() and path.read_bytes().startswith(b"#!")
)
Ended = subprocess.CompletedProcess[str]


def ask(name: str) -> Ended:
    path = REPO / "scripts" / name
    program = "bash" if b"bash" in path.read_bytes().partition(b"\n")[0] else sys.executable
    return subprocess.run(
        [program, str(path), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def answers() -> dict[str, Ended]:
    names = [name for name in SCRIPTS if name not in EXEMPT]
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(names, pool.map(ask, names), strict=True))


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in EXEMPT])
def test_a_script_says_what_it_does_and_does_nothing_else(answers: dict[str, Ended], name: str) -> None:
    ended = answers[name]
    assert (ended.returncode, ended.stderr) == (0, "")
    text = (REPO / "scripts" / name).read_text(encoding="utf-8")
    words = text.split('"""', 1)[1] if '"""' in text and "bash" not in text[:30] else text.split("\n# ", 1)[1]
    assert " ".join(words.split()[:4]) in " ".join(ended.stdout.split())


def test_exempt_scripts_are_there() -> None:
    assert EXEMPT.keys() <= set(SCRIPTS)
