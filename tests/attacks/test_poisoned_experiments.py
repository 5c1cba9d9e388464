"""Tags that a stranger wrote are data: what is not a tag of ours is passed over."""

from __future__ import annotations

import json

import pytest

from evaltrack.tracking.baselines import Baseline, read_baselines
from evaltrack.tracking.tags import read_tag

BASELINE = {"golden": "small", "run_id": "x", "by": "me", "at": "2026-01-01T00:00:00+00:00", "reason": ""}
DEEP = "[" * 3900 + "]" * 3900
CHANGES = [{"golden": {"a": [1]}}, {"run_id": 7}, {"at": None}, {"more": 1}]
SPOILT = [json.dumps({**BASELINE, **each}) for each in CHANGES]
SPOILT += [DEEP, f'{{"golden": {DEEP}}}', json.dumps([BASELINE]), "null", "NaN", "1e999", "{"]


@pytest.mark.parametrize("text", SPOILT)
def test_a_spoilt_tag_is_none(text: str) -> None:
    assert read_tag(Baseline, text) is None
    assert read_baselines({"evaltrack.baseline.small": text}) == []


def test_a_tag_of_one_golden_set_cannot_speak_for_another() -> None:
    text = json.dumps(BASELINE)
    assert [each.run_id for each in read_baselines({"evaltrack.baseline.small": text})] == ["x"]
    assert read_baselines({"evaltrack.baseline.other": text}) == []
