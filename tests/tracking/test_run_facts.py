"""Where a run comes from, as far as it says so."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from evaltrack.tracking.run_facts import LONGEST, MOST, facts_of


def run(tags: dict[str, str], params: dict[str, str], started: int | None) -> Any:
    """What MLflow returns of a run."""
    return SimpleNamespace(data=SimpleNamespace(tags=tags, params=params), info=SimpleNamespace(start_time=started))


def test_commit_author_start_and_params_are_named() -> None:
    """What the run does not say is left out, and a param never takes the place of a fact."""
    tags = {"mlflow.source.git.commit": "a1f9", "mlflow.user": "ada", "other": "x"}
    made = facts_of(run(tags, {"prompt": "v3", "author": "someone"}, 1_700_000_000_000))
    assert made == {"prompt": "v3", "commit": "a1f9", "author": "ada", "started": "2023-11-14 22:13 UTC"}
    assert facts_of(run({}, {}, None)) == {}


def test_facts_are_bounded() -> None:
    """Anybody may log more, and longer."""
    made = facts_of(run({"mlflow.user": "u" * 9000}, {f"p{n:04}": "v" * 9000 for n in range(MOST + 50)}, 10**20))
    assert len(made) == MOST + 2
    assert max(map(len, made.values())) == LONGEST
    assert made["started"].startswith("9999-")
