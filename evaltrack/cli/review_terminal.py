"""`evaltrack golden review --terminal`: the review without a browser, with the keys of its page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evaltrack.api.review_golden import GoldenReview, ReviewedChunk, ReviewedQuestion
from evaltrack.errors import UsageError
from evaltrack.golden.review.session import NoQuestionError
from evaltrack.report.words import one_line

TEXT, CURRENT_TEXT = 160, 1500
"""Characters of a chunk that are printed, and of the one that is chosen."""

KEYS = (
    "j k question  down up chunk  space mark  0-9 grade  q quote  / search  e edit  n negative  u undo  ? keys  x end"
)
ARROWS = {"\x1b[A": "up", "\x1bOA": "up", "\xe0H": "up", "\x1b[B": "down", "\x1bOB": "down", "\xe0P": "down"}
ENDS = ("x", "\x03", "\x04", "")


TERMINAL = Path("/dev/tty")
"""Where keys come from while something else is the standard input."""


def check_terminal() -> None:
    """Look for a terminal that keys can be read from.

    Raises:
        UsageError: there is none.
    """
    if sys.platform == "win32" or sys.stdin.isatty():
        return
    try:
        TERMINAL.open("rb").close()
    except OSError:
        cure = "leave `--terminal` out to review in a browser, or run the command in a terminal"
        raise UsageError(f"there is no terminal; {cure}") from None


def review_in_terminal(review: GoldenReview) -> None:
    """Go through the questions until the person ends it, or none is left."""
    _Terminal(review).run()


class _Terminal:
    """One person at a terminal: the question, the chosen chunk, and what is searched for."""

    def __init__(self, review: GoldenReview) -> None:
        self._review = review
        self._judging = review.unjudged is not None
        self._ids = review.ids(drafts=not self._judging and review.session.drafts > 0)
        self._at = self._chosen = 0
        self._query = self._message = ""

    def run(self) -> None:
        """Show, read a key, do it; an action that cannot be done says why. What was removed meanwhile is left out."""
        while self._at < len(self._ids):
            try:
                viewed = self._review.view(self._ids[self._at], self._query)
            except NoQuestionError as error:
                del self._ids[self._at]
                self._message = f"{error.message}; it is left out"
                self._go(0)
                continue
            except UsageError as error:
                viewed, self._message = None, error.message
            if viewed:
                self._show(viewed)
            click.secho(self._message, fg="yellow") if self._message else None
            self._message = ""
            key = click.getchar()
            key = ARROWS.get(key, key)
            if key in ENDS:
                return
            try:
                self._do(key, viewed)
            except UsageError as error:
                self._message = error.message
        if self._message:
            click.secho(self._message, fg="yellow")

    def _do(self, key: str, viewed: ReviewedQuestion | None) -> None:
        """What a key means anywhere, then what it means for the chosen chunk."""
        if key in ("j", "s") or (key in "\r\n" and self._judging):
            self._go(1)
        elif key == "k":
            self._go(-1)
        elif key == "?":
            self._message = f"{KEYS}  Enter {'next question' if self._judging else 'confirm'}  s skip"
        elif key == "u":
            name, outcome = self._review.session.undo()
            self._at = self._ids.index(name) if name in self._ids else self._at
            self._message = outcome.message or "undone"
        elif viewed is not None:
            self._change(key, viewed)

    def _change(self, key: str, viewed: ReviewedQuestion) -> None:
        chunks = _all(viewed)
        chunk = chunks[min(self._chosen, len(chunks) - 1)] if chunks else None
        if key in ("up", "down"):
            self._chosen = min(max(self._chosen + (1 if key == "down" else -1), 0), max(len(chunks) - 1, 0))
        elif chunk and key.isdecimal():
            self._grade(viewed, chunk, int(key))
        elif chunk and key == " ":
            if self._judging:
                self._grade(viewed, chunk, None)
            else:
                self._act("unmark" if chunk.is_expected else "mark", chunk=chunk.key)
        elif not self._judging:
            self._edit(key, viewed, chunk)

    def _edit(self, key: str, viewed: ReviewedQuestion, chunk: ReviewedChunk | None) -> None:
        """The keys that are of a whole review alone."""
        if key == "/":
            self._query = click.prompt("search", default="", show_default=False)
            self._chosen = len(viewed.chunks) if self._query else 0
        elif key == "q" and chunk:
            if words := click.prompt("words of the chosen chunk to quote", default="", show_default=False):
                self._act("quote", chunk=chunk.key, words=words)
        elif key == "e":
            question = click.prompt("question", default=viewed.question.question)
            answer = click.prompt("expected answer", default=viewed.question.expected_answer or "")
            self._act("reword", question=question, expected_answer=answer)
        elif key == "n":
            self._act("negate")
        elif key in "\r\n" and self._act("confirm"):
            self._go(1)

    def _grade(self, viewed: ReviewedQuestion, chunk: ReviewedChunk, grade: int | None) -> None:
        if self._act("grade", chunk=chunk.key, grade=grade) and self._judging:
            left = [n for n, each in enumerate(viewed.chunks) if each.grade is None and each.key != chunk.key]
            self._chosen = next((n for n in left if n > self._chosen), left[0] if left else self._chosen)
            self._message = "" if left else "all chunks of this question are judged; Enter goes on"

    def _act(self, kind: str, **values: object) -> bool:
        """Do an action on the question; whether it is in the file."""
        outcome = self._review.act(self._ids[self._at], kind, **values)
        self._message = outcome.message
        return outcome.is_done

    def _go(self, by: int) -> None:
        self._at = max(self._at + by, 0)
        self._chosen, self._query = 0, ""
        if self._at + 1 < len(self._ids):
            self._review.prefetch(self._ids[self._at + 1])

    def _show(self, viewed: ReviewedQuestion) -> None:
        click.clear()
        question = viewed.question
        states = ["draft"] * question.draft + ["negative"] * viewed.is_negative
        about = f"{self._at + 1} of {len(self._ids)}  {one_line(question.id)}  {' '.join(states)}"
        click.secho(f"{about}   ? shows the keys", fg="cyan")
        for turn in question.history:
            click.secho(one_line(str(turn), CURRENT_TEXT), dim=True)
        click.secho(one_line(question.question, CURRENT_TEXT), bold=True)
        for variant in question.variants:
            click.echo(f"or: {one_line(variant, CURRENT_TEXT)}")
        if question.expected_answer:
            click.echo(one_line(question.expected_answer, CURRENT_TEXT))
        for _, words in viewed.passages:
            click.secho(f"  quoted: {one_line(words, CURRENT_TEXT)}", fg="green")
        for problem in viewed.problems:
            click.secho(f"a retriever failed: {one_line(problem, CURRENT_TEXT)}", fg="yellow")
        for number, chunk in enumerate(_all(viewed)):
            if number == len(viewed.chunks):
                click.secho("found:", fg="cyan")
            self._show_chunk(chunk, is_chosen=number == self._chosen)

    def _show_chunk(self, chunk: ReviewedChunk, *, is_chosen: bool) -> None:
        grade = "" if chunk.grade is None else f" [{chunk.grade}]"
        head = f"{'>' if is_chosen else ' '} {'*' if chunk.is_expected else ' '}{grade} {one_line(chunk.title)}"
        click.secho(f"{head}  {one_line(chunk.id)}", bold=is_chosen, fg="green" if chunk.is_expected else None)
        click.echo(f"     {one_line(chunk.text, CURRENT_TEXT if is_chosen else TEXT)}")


def _all(viewed: ReviewedQuestion) -> list[ReviewedChunk]:
    """The chunks that can be chosen, those found by a search last."""
    return [*viewed.chunks, *(viewed.matches or ())]
