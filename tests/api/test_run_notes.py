"""What is worth knowing of a run besides its numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evaltrack import run_eval

PAGES = {"cats.md": "Cats sleep all day.", "dogs.md": "Dogs run in the park.", "fish.md": "Fish swim."}


@pytest.mark.parametrize(
    ("settings", "floor"),
    [
        ("floor=0.1", "1 answerable question was below the floor 0.1 (setting `floor`), and declined"),
        ("floor=50", "2 answerable questions were below the floor 50 (setting `floor`), and declined"),
        ("floor=50&by=domain", "2 answerable questions were below the floor 50 (setting `floor`), and declined"),
        ("floor=0", None),
    ],
)
def test_questions_below_the_floor_are_counted(
    store_uri: str, tmp_path: Path, settings: str, floor: str | None
) -> None:
    """A note counts the answerable ones, and not the negative; without a floor there is none."""
    pages = tmp_path / "docs" / "pets"
    pages.mkdir(parents=True)
    for name, text in PAGES.items():
        (pages / name).write_text(f"# {name}\n\n{text}\n")
    questions = [
        {"id": "1", "question": "When do cats sleep?", "expected_sources": ["cats.md"], "domain": "pets"},
        {"id": "2", "question": "Quantum chromodynamics?", "expected_sources": ["fish.md"], "domain": "pets"},
        {"id": "3", "question": "Volcanoes?", "expected_chunks": [], "domain": "pets"},
    ]
    golden = tmp_path / "mine.jsonl"
    golden.write_text("".join(json.dumps(each) + "\n" for each in questions))
    place = pages.parent if "by=domain" in settings else pages
    made = run_eval(golden, target=f"bm25:{place}?{settings}", tracking_uri=store_uri)
    assert [note for note in made.notes if "floor" in note] == ([floor] if floor else [])
