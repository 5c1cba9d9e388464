"""Results of another tool, each at the question that it is of: by id where texts agree with that, else by the text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaltrack.errors import BadLinesError, UsageError
from evaltrack.golden.exchange.corpus_ids import CorpusIds
from evaltrack.golden.exchange.records import shown
from evaltrack.golden.words import text_key
from evaltrack.records import Question, Response, Target
from evaltrack.records.amount import first_of
from evaltrack.records.id_hashes import EXAMPLES, IdHashes, shown_id, strangers_note
from evaltrack.system.files import content_digest
from evaltrack.targets.mapping import bounded
from evaltrack.targets.responses import as_response
from evaltrack.targets.results.detection import READERS
from evaltrack.targets.results.files import Entry, names_shown, read_results
from evaltrack.targets.results.own_rows import is_cut
from evaltrack.targets.results.result import Result, TextNames

VARIANTS = ("provider", "prompt", "epoch", "trial")
"""Settings that choose one of several results of a question."""


class NotRecordedError(LookupError):
    """The file holds no response for a question."""


class FailedElsewhereError(RuntimeError):
    """The tool recorded a failure in place of a response."""


@dataclass(frozen=True)
class Choice:
    """How a file of results is read.

    Attributes:
        format: A format of `forms.FORMATS`; empty where the content shows it.
        corpus: Folder or file in which the texts of sources have ids; empty for none.
        question: Name of the variable or column that holds the question; empty for the usual ones.
        pair: `id` pairs by ids alone, `text` by texts alone; empty by both.
        variant: Of several results of a question, those of this provider, prompt, epoch or trial.
    """

    format: str
    corpus: str
    question: str
    pair: Literal["", "id", "text"]
    variant: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Stored:
    """A result as it is held: its response is JSON, which is small."""

    place: str
    text: str | None
    response: bytes
    failure: str
    nameless: bool
    variant: tuple[str, ...]


class PairedResults(Target):
    """Gives for each question what was recorded of it."""

    takes_history: bool = True
    """They were given to whatever was asked then: nothing is left out here."""

    @property
    def recording(self) -> str:
        """The digest of the file."""
        return content_digest(self._path)

    def __init__(self, path: Path, start: bytes, choice: Choice) -> None:
        self._path, self._pair = path, choice.pair
        self._names = TextNames(corpus_ids(choice.corpus) if choice.corpus else None)
        self._by_id, self._by_text = dict[str, _Stored](), dict[str, _Stored]()
        self._twice = defaultdict[str, list[_Stored]](list)
        self._texts_twice = set[str]()
        self._missing, self._without_ids = dict[str, None](), dict[str, None]()
        self._count = self._cut = 0
        self.format, entries = read_results(path, start, choice.format)
        self._take(entries, choice)
        if self._names.corpus and self._names.texts and self._names.strangers == self._names.texts:
            raise UsageError(f"recorded target {path}: none of its texts is one of the passages of {choice.corpus}")

    def _take(self, entries: Iterator[Entry], choice: Choice) -> None:
        problems, variants = list[str](), defaultdict[str, dict[str, None]](dict)
        for place, row in entries:
            try:
                if isinstance(row, ValueError):
                    raise row
                result = READERS[self.format](row, choice.question)
                for name, value in result.variant.items():
                    variants[name][value] = None
                if any(result.variant.get(name) != value for name, value in choice.variant.items()):
                    continue
                self._put(place, result)
                self._count += 1
                self._cut += self.format == "rows" and is_cut(row)
            except ValueError as error:
                problems.append(f"{place}: {error}")
        if problems:
            raise BadLinesError(problems)
        self._check_choice(choice, variants)
        self._refuse_repeats(choice, variants)

    def _put(self, place: str, result: Result) -> None:
        response, nameless = b"", False
        if not result.failure:
            fields = dict(result.fields)
            if isinstance(fields.get("sources"), list):
                fields["sources"], nameless = self._names.name(bounded(fields)["sources"])
            response = as_response(bounded(fields)).model_dump_json(exclude_defaults=True).encode()
        text = None if result.question is None else text_key(result.question)
        stored = _Stored(place, text, response, result.failure, nameless, tuple(result.variant.values()))
        key = result.id if self._pair != "text" else None
        if key is None and (text is None or self._pair == "id"):
            raise ValueError("has no id of a question; leave out `pair=`, or give the question an id")
        if key is not None and self._by_id.setdefault(key, stored) is not stored:
            self._twice[f"id `{shown(key)}`"].append(stored)
        if text is not None and self._by_text.setdefault(text, stored) is not stored:
            self._texts_twice.add(text)
            if key is None:
                self._twice[f"the question of {self._by_text[text].place}"].append(stored)

    def _check_choice(self, choice: Choice, variants: Mapping[str, Mapping[str, None]]) -> None:
        for name, value in choice.variant.items():
            if name not in variants:
                raise UsageError(f"recorded target {self._path}: setting `{name}` says nothing of {self.format}")
            if value not in variants[name]:
                there = names_shown(variants[name])
                raise UsageError(f"recorded target {self._path}: `{name}` is {shown(value)}; there are {there}")
        if not self._count:
            raise UsageError(f"recorded target {self._path}: holds no results")

    def _refuse_repeats(self, choice: Choice, variants: Mapping[str, Mapping[str, None]]) -> None:
        if not self._twice:
            return
        several = {name: list(values) for name, values in variants.items() if len(values) > 1}
        open_ones = {name: values for name, values in several.items() if name not in choice.variant}
        if open_ones:
            name, values = next(iter(open_ones.items()))
            cure = f"choose one with `?{name}=`: {names_shown(values)}"
            raise UsageError(f"recorded target {self._path}: holds results of {len(values)} {name}s; {cure}")
        problems = [
            f"{stored.place}: {what} is recorded twice; keep one of them"
            for what, results in self._twice.items()
            for stored in results
        ]
        raise BadLinesError(problems)

    @property
    def notes(self) -> list[str]:
        """How the file was read, which questions it lacks, and what of it could not be measured."""
        notes = [f"{self._path}: read as results of {self.format}"] if self.format != "lines" else []
        if self._missing:
            first = first_of(
                [f"`{shown(key)}`" for key in list(self._missing)[:EXAMPLES]], EXAMPLES, len(self._missing)
            )
            what = f"questions that none of its {self._count:,} results is of: {len(self._missing):,}"
            notes.append(f"{self._path}: {what} ({first})")
        if self._without_ids:
            cure = "name the corpus (`?corpus=DIR`), or add quotations (evaltrack golden anchor)"
            what = (
                "questions that expect ids, and whose sources are texts without any, so that retrieval is not measured"
            )
            notes.append(f"{self._path}: {what}: {len(self._without_ids):,}; {cure}")
        if self._names.corpus and self._names.strangers:
            notes.append(
                f"{self._path}: {self._names.strangers:,} of {self._names.texts:,} texts are not in the corpus"
            )
        if self._cut:
            cure = "an expected quotation may stand in what is missing; keep k as it was"
            notes.append(f"{self._path}: rows without the whole texts of all sources: {self._cut:,}; {cure}")
        return notes

    def strangers(self, golden: IdHashes) -> str:
        """A note on results that only an id pairs, and that of no question in the golden set."""
        by_id = [key for key, stored in self._by_id.items() if stored.text is None or self._pair == "id"]
        others = golden.others(by_id)
        return strangers_note(self._path, "results", len(others), list(map(shown_id, others[:EXAMPLES])))

    async def __call__(self, question: Question, _k: int, /) -> Response:
        """What was recorded of the question.

        Raises:
            FailedElsewhereError: a failure was recorded.
            NotRecordedError: no result is of the question.
        """
        stored = self._stored(question)
        if stored.failure:
            raise FailedElsewhereError(f"{self.format} recorded: {stored.failure}")
        response = Response.model_validate_json(stored.response)
        if stored.nameless and expects_ids(question):
            self._without_ids[question.id] = None
            return response.model_copy(update={"sources": None})
        return response

    def _stored(self, question: Question) -> _Stored:
        key = text_key(question.question)
        by_id = self._by_id.get(question.id)
        if by_id is not None and (self._pair == "id" or by_id.text in (None, key)):
            return by_id
        by_text = None if self._pair == "id" else self._by_text.get(key)
        if by_text is not None and key not in self._texts_twice:
            return by_text
        self._missing[question.id] = None
        raise NotRecordedError(self._why_not(by_id, key))

    def _why_not(self, by_id: _Stored | None, key: str) -> str:
        if key in self._texts_twice:
            return f"several results in {self._path} are of this text, and none has this id"
        if by_id is not None:
            return f"this id asks something else in {self._path}; pair by ids alone with `?pair=id`"
        by = {"id": "this id", "text": "this text"}.get(self._pair, "this id or text")
        return f"no response in {self._path}: no result has {by}"


def expects_ids(question: Question) -> bool:
    """Whether something that an answerable question expects is told by its id or title alone."""
    passages = question.expected_passages
    return bool(question.expected) and (passages is None or not all(passage.quote for passage in passages))


def corpus_ids(place: str, what: str = "recorded target") -> CorpusIds:
    """The ids of the passages in a folder or file.

    Raises:
        UsageError: it is not there.
    """
    path = Path(place)
    if not path.exists():
        raise UsageError(f"{what}: corpus {path}: there is no such folder or file")
    return CorpusIds(path)
