"""What a person does to a question, and the fields of the golden file that it changes. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evaltrack.errors import UsageError
from evaltrack.golden.lines import checked_question
from evaltrack.golden.review.expectation import Expectation, Shown, expectation_of
from evaltrack.records import Question

Fields = Mapping[str, object]
"""Values of fields of a golden line; None takes the field away."""


@dataclass(frozen=True)
class Mark:
    """Expect a chunk, or no longer."""

    chunk: Shown
    is_expected: bool = True


@dataclass(frozen=True)
class Grade:
    """Say how relevant a chunk is; 0: not at all, None: relevant, by the least grade that is."""

    chunk: Shown
    grade: int | None = None


@dataclass(frozen=True)
class Quote:
    """Expect words of a chunk; `ids_of_title` are the chunks of a page, for what was expected by title before.

    `home` is the chunk of the corpus that holds the words, whose id is expected beside them; None where none does.
    """

    chunk: Shown
    words: str
    ids_of_title: Callable[[str], Sequence[str]]
    home: Callable[[Shown, str], Shown | None]


@dataclass(frozen=True)
class Unquote:
    """Take an expected passage away, by its key; `chunk_of` is the chunk with an id, None where it is not known."""

    key: str
    chunk_of: Callable[[str], Shown | None]


@dataclass(frozen=True)
class Negate:
    """Make the question a negative, or no longer one."""


@dataclass(frozen=True)
class Reword:
    """Change the question and its expected answer; an empty answer is none."""

    question: str
    expected_answer: str


@dataclass(frozen=True)
class Confirm:
    """The question is right: it is no draft, and who looked at it and when is noted."""

    by: str
    at: str


@dataclass(frozen=True)
class Restore:
    """Give fields values that they had before."""

    fields: Fields


Action = Mark | Grade | Quote | Unquote | Negate | Reword | Confirm | Restore


def changed_fields(
    raw: Mapping[str, object], question: Question, action: Action, by_title: bool = False
) -> dict[str, object]:
    """The new values of the fields that an action changes; None of those that it takes away.

    Args:
        raw: The object of the question in the file.
        question: The question that it is.
        action: What is done.
        by_title: Whether chunks are expected by their titles where nothing is expected yet.

    Raises:
        UsageError: the action cannot be done, or would make the line a bad one.
    """
    made = _fields(raw, question, action, by_title)
    for name in ("expected_chunks", "expected_sources"):
        if isinstance(old := raw.get(name), list) and isinstance(new := made.get(name), list):
            written = {str(each): each for each in old}  # an id that is written as a number stays one
            made[name] = [written.get(each, each) for each in new]
    changes = {name: value for name, value in made.items() if raw.get(name) != value}
    checked = checked_question(dict(after(raw, changes)) | {"id": question.id, "domain": question.domain})
    if isinstance(checked, list):
        raise UsageError(checked[0])
    return changes


def after(raw: Mapping[str, object], changes: Fields) -> dict[str, object]:
    """The object of a question with its changed fields."""
    return {name: value for name, value in {**raw, **changes}.items() if value is not None}


def before(raw: Mapping[str, object], changes: Fields) -> Restore:
    """What undoes changes."""
    return Restore({name: raw.get(name) for name in changes})


def _fields(raw: Mapping[str, object], question: Question, action: Action, by_title: bool) -> dict[str, object]:
    match action:
        case Reword():
            return {"question": action.question, "expected_answer": action.expected_answer or None}
        case Confirm():
            metadata = {**question.metadata, "reviewed": {"by": action.by, "at": action.at}}
            return {"draft": None, "metadata": metadata}
        case Restore():
            return dict(action.fields)
    before_it = expectation_of(question, raw, by_title)
    after_it = _expected(before_it, action)
    return {} if after_it == before_it else after_it.fields()


def _expected(expectation: Expectation, action: Mark | Grade | Quote | Unquote | Negate) -> Expectation:
    match action:
        case Mark():
            return expectation.mark(action.chunk) if action.is_expected else expectation.unmark(action.chunk)
        case Grade():
            return expectation.give(action.chunk, expectation.least if action.grade is None else action.grade)
        case Quote():
            return expectation.quote(action.chunk, action.words, action.ids_of_title, action.home)
        case Unquote():
            return expectation.unquote(action.key, action.chunk_of)
        case Negate():
            return expectation.positive() if expectation.is_negative else expectation.negative()
