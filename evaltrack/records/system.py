"""What identifies the system that a run evaluated, so that another one is never asked in its place."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evaltrack.records.amount import first_of, verb
from evaltrack.records.base import Record

LONGEST = 7900
"""Characters of a record; a tag of MLflow holds 8,000."""


class System(Record):
    """A target as it was evaluated. Environment variables are no part of it.

    `changes` is a digest of what was not committed, empty in a clean work tree. `files` holds path and digest of each
    file of the project that it runs; of very many the first. `settings` are the options of the target, and its model.
    """

    commit: str = ""
    changes: str = ""
    corpus: str = ""
    settings: Mapping[str, str] = {}
    files: Mapping[str, str] = {}

    @property
    def is_committed(self) -> bool:
        """Whether the commit says all of what is in the work tree."""
        return bool(self.commit) and not self.changes

    def with_files(self, files: Mapping[str, str]) -> System:
        """The same with more files, as long as there is room. A file that it holds stays as it was."""
        held, room = dict(self.files), LONGEST - len(self.model_dump_json())
        for name, digest in files.items():
            room -= len(json.dumps([name, digest])) if name not in held else 0
            if room >= 0:
                held.setdefault(name, digest)
        return self.model_copy(update={"files": held})


def why_another_system(one: System, other: System) -> str | None:
    """Why the second is another system than the first, which a run evaluated; None where it is the same."""
    changed = [f"`{name}`" for name, was in one.files.items() if other.files.get(name, was) != was]
    if changed:
        return f"{first_of(changed, 3)} {verb(len(changed), 'was', 'were')} changed"
    if one.corpus != other.corpus:
        return "the corpus was changed"
    for name in sorted({*one.settings, *other.settings}):
        if one.settings.get(name) != other.settings.get(name):
            return f"the setting `{name}` differs"
    if one.commit != other.commit:
        return "the commit is another"
    if one.changes != other.changes:
        return f"the work tree {'was not clean when the run was made' if one.changes else 'has changes since'}"
    return None
