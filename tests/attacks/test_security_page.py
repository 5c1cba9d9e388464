"""SECURITY.md names the test that holds each of its promises, and no promise is without one."""

from __future__ import annotations

import re

from evaltrack.cli.compare import compare
from evaltrack.cli.run import run
from tests.conftest import REPO

PAGE = (REPO / "SECURITY.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|") and ".py`" in line]
FOLDER = REPO / "tests" / "attacks"


def test_every_attack_stands_on_the_page() -> None:
    named = [name for row in ROWS for name in re.findall(r"`(test_\w+\.py)`", row)]
    assert sorted(named) == sorted({path.name for path in FOLDER.glob("test_*.py")} - {"test_security_page.py"})
    assert set(re.findall(r"`(test_\w+\.py)`", PAGE)) == set(named)
    assert len(PAGE.splitlines()) <= 120


def test_every_option_and_script_on_the_page_exists() -> None:
    for script in re.findall(r"`(scripts/[\w.]+)`", PAGE):
        assert (REPO / script).is_file(), script
    code = "".join(path.read_text(encoding="utf-8") for path in (REPO / "evaltrack/cli").glob("*.py"))
    options = {option for command in (run, compare) for parameter in command.params for option in parameter.opts}
    for option in set(re.findall(r"`(?:evaltrack [a-z ]+|compare )?(--[a-z-]+)", PAGE)) - {"--app-name"}:
        assert option in options or f'"{option}"' in code, option
