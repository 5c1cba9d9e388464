"""Cut a golden set into parts, each a range of bytes of one file that all workers can read.

The file is written anew from the questions that are asked. So parts are alike for `.jsonl` and `.json`, for a
selection and with drafts left out; the golden set itself needs no place in the shared folder, and no worker sees it
change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.engine.folder import QUESTIONS, WorkFolder, words_of
from evaltrack.evaluation.engine.orders import Manifest, Part
from evaltrack.records import Question

MOST_QUESTIONS = 1000
"""In a part: what its worker has done is in one file."""
MOST_BYTES = 16 << 20
"""In a part: a worker holds its questions in memory."""
ROUNDS_IN_FLIGHT = 4
"""A part has so many questions for each that is in flight: at its end a worker waits for the slowest of them."""
PARTS_OF_WORKER = 8
"""Parts for each worker, where there are enough questions, so that all of them end at about the same time."""


def part_size(num_questions: int, workers: int, in_flight: int) -> int:
    """Questions in a part, where each of the `workers` has so many `in_flight`."""
    wanted = max(-(-num_questions // (workers * PARTS_OF_WORKER)), ROUNDS_IN_FLIGHT * in_flight)
    return max(1, min(wanted, -(-num_questions // workers), MOST_QUESTIONS))


def cut(questions: Iterable[Question], path: Path, size: int) -> Manifest:
    """Write the questions to `path`, one a line, and cut them into parts of at most `size`.

    Raises:
        GoldenError: the golden set is no longer what was checked.
        OSError: the file cannot be written.
    """
    digest, parts = sha256(), list[Part]()
    start = at = first = number = 0
    with path.open("wb") as file:
        for number, question in enumerate(questions, start=1):
            line = question.model_dump_json(exclude_defaults=True).encode() + b"\n"
            file.write(line)
            digest.update(line)
            at += len(line)
            if number - first >= size or at - start >= MOST_BYTES:
                parts.append(Part(number=len(parts), start=start, end=at, first=first, questions=number - first))
                start, first = at, number
    if number > first:
        parts.append(Part(number=len(parts), start=start, end=at, first=first, questions=number - first))
    return Manifest(digest=digest.hexdigest(), parts=tuple(parts))


def questions_of(folder: WorkFolder, part: Part) -> Iterator[Question]:
    """The questions of a part.

    Raises:
        InconclusiveError: the file does not hold them.
    """
    try:
        lines = folder.questions_of(part).splitlines()
        if len(lines) != part.questions:
            raise ValueError(f"{len(lines)} lines")
        for line in lines:
            yield Question.model_validate_json(line)
    except (OSError, ValueError) as error:
        why = words_of(error) if isinstance(error, OSError) else error
        cure = "let no other program write there, and give a folder that all workers share with `engine_folder=`"
        raise InconclusiveError(
            f"{folder}/{QUESTIONS}: does not hold the questions of part {part.number} ({why}); {cure}"
        ) from None
