"""Defines `evaltrack golden`: lints, imports and reviews golden sets; adds questions, model drafts and quotations."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from evaltrack.cli.options import from_caller, output_option
from evaltrack.cli.output import print_json, with_options
from evaltrack.errors import EXIT_MISSED, EXIT_USAGE, Guide, UsageError, printable
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import count, verb
from evaltrack.report.escaping import one_line

if TYPE_CHECKING:
    from evaltrack.api.draft_by_model import ModelDrafts
    from evaltrack.golden.lint import Finding
    from evaltrack.records import Question

CORPUS_HELP = (
    "Folder of the pages, or bm25:DIR with its settings.  [default: `corpus` under golden.lint in the settings file; "
    "else corpus/NAME next to FILE; else the folder of the bm25: target in the settings file]"
)
CORPUS, FILE = click.option("--corpus", default=None, help=CORPUS_HELP), click.argument("file", type=click.Path())
OUTPUT = output_option()

FINDINGS_SHOWN = 20
"""Number of findings of one code in one file that are printed; JSON holds all."""


@click.group()
def golden() -> None:
    """Create and check golden sets."""


@golden.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@CORPUS
@click.option("--ignore", multiple=True, metavar="CODE", help="Code of findings to leave out; repeatable.")
@click.option("--strict", is_flag=True, help="Exit 1 on warnings too.")
@OUTPUT
def lint(
    files: tuple[str, ...],
    corpus: str | None,
    ignore: tuple[str, ...],
    strict: bool,
    output: str,
) -> int:
    """Check every line of the golden sets FILES, and look up expected sources in the corpus.

    \b
    Examples:
      evaltrack golden lint golden/*.json*
      evaltrack golden lint mine.jsonl --corpus docs
      evaltrack golden lint mine.jsonl --ignore thin-domain --output json

    Exits 2 on errors; all findings of all files are listed.
    """
    from evaltrack.api.golden_sets import lint_golden

    findings: list[Finding] = []
    for name in files:
        findings += lint_golden(name, corpus or None, ignore=ignore)
    severities = {finding.severity for finding in findings}
    if output == "json":
        print_json([finding.model_dump() for finding in findings])
    else:
        _print_findings(findings)
    if "error" in severities:
        return EXIT_USAGE
    if output != "json":
        click.echo(f"{count(len(files), 'golden set')} checked, all lines are valid")
    return EXIT_MISSED if strict and "warning" in severities else 0


def _print_findings(findings: Iterable[Finding]) -> None:
    """Print the first `FINDINGS_SHOWN` findings of each code and file on stderr."""
    shown: Counter[tuple[str, str]] = Counter()
    colours = {"error": "red", "warning": "yellow", "note": None}
    for finding in findings:
        shown[finding.file, finding.code] += 1
        if shown[finding.file, finding.code] <= FINDINGS_SHOWN:
            click.secho(with_options(shown_text(printable(str(finding)))), err=True, fg=colours[finding.severity])
    for (file, code), number in shown.items():
        if number > FINDINGS_SHOWN:
            click.echo(f"{file}: ... and {number - FINDINGS_SHOWN:,} more [{code}]; --output json lists all", err=True)
    if shown:
        click.echo(Guide.LINT.reference, err=True)


SHOWN_TEXT = 300


@golden.command()
@FILE
@CORPUS
@click.option("--dry-run", is_flag=True, help="Show the changes without writing them.")
@OUTPUT
def anchor(file: str, corpus: str | None, dry_run: bool, output: str) -> None:
    """Add quotations to the questions in FILE that expect chunk ids.

    The questions then stay valid when pages are chunked differently.

    \b
    Examples:
      evaltrack golden anchor golden/travel.jsonl --dry-run
      evaltrack golden anchor mine.jsonl --corpus 'bm25:docs?chunk=words:200'

    Then check the quotations: each must contain the answer. Doubtful ones are marked.
    """
    from evaltrack.api.golden_sets import anchor_golden

    result = anchor_golden(file, corpus or None, dry_run=dry_run)
    if output == "json":
        anchors = [vars(each) for each in result.anchors]
        print_json({"anchors": anchors, "left": [{"question": key, "reason": why} for key, why in result.left]})
        return
    for each in result.anchors:
        doubt = click.style(f"  ? {each.doubt}", fg="yellow") if each.doubt else ""
        click.echo(f"{one_line(each.question)}  {one_line(each.chunk)}  {one_line(each.quote, SHOWN_TEXT)}{doubt}")
    for key, why in result.left:
        click.echo(f"question {one_line(key)} is left as it is: {one_line(why)}", err=True)
    change = "would get" if dry_run else "got"
    doubts = sum(bool(each.doubt) for each in result.anchors)
    quotations = f"{count(len(result.anchors), 'quotation')}, {doubts} of them in doubt"
    questions = count(len({each.question for each in result.anchors}), "question")
    click.echo(f"{questions} {change} {quotations}", err=True)


@golden.command()
@FILE
@CORPUS
@click.option("-t", "--target", multiple=True, help="Retriever whose chunks to show; repeatable.")
@click.option("-k", default=10, show_default=True, type=click.IntRange(1, 100), help="Chunks of each retriever.")
@click.option("--by", default="", help="Name of the reviewer.  [default: the login name]")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="Port of the page.  [default: a free one]")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser.")
def review(
    file: str,
    corpus: str | None,
    target: tuple[str, ...],
    k: int,
    by: str,
    port: int,
    no_open: bool,
) -> None:
    """Review the questions of FILE in a browser: mark expected sources, quote them, confirm drafts.

    \b
    Examples:
      evaltrack golden review golden/travel.jsonl
      evaltrack golden review mine.jsonl -t bm25:docs -t python:app.rag:ask

    The page is served on this machine only, until Ctrl-C. Every mark is saved at once.
    """
    from evaltrack.ui.local import serve
    from evaltrack.ui.review import GoldenReview, review_app

    made = GoldenReview(file, corpus or None, list(map(from_caller, target)), k=k, by=by)
    try:
        serve(partial(review_app, made), port, lambda address, file: _announce(address, file, opens=not no_open))
    except KeyboardInterrupt:
        click.echo(err=True)
    finally:
        made.close()
    drafts = made.session.drafts
    click.echo(f"{count(drafts, 'draft')} left" if drafts else "no drafts left", err=True)


def _announce(address: str, file: str, *, opens: bool) -> None:
    """Print the address of the page and open it in a browser.

    The browser is started with a file, because all users of the machine can see its command line.
    """
    import webbrowser

    click.echo(f"Review at {address} (press Ctrl-C to stop)", err=True)
    if opens and (sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(file)  # without a display a text browser would take the terminal


@golden.command()
@FILE
@click.option("--question", required=True, help="The question's text.")
@click.option("--expect", multiple=True, help="Id of an expected chunk; repeatable.")
@click.option("--source", multiple=True, help="Title of an expected page; repeatable.")
@click.option("--quote", multiple=True, help="Quotation that a retrieved chunk should contain; repeatable.")
@click.option("--negative", is_flag=True, help="The target should say that it does not know.")
@click.option("--answer", default=None, help="The expected answer.")
@click.option("--difficulty", default=None, type=click.Choice(["easy", "medium", "hard"]), help="How hard it is.")
@click.option("--category", default=None, help="Its category, such as installation, usage, troubleshooting or api.")
@click.option("--domain", default=None, help="The question's domain.  [default: the name of FILE]")
@click.option("--notes", default=None, help="Why the question is there.")
@click.option("--id", default=None, help="The question's id.  [default: one more than the largest number]")
@click.option("--draft", is_flag=True, help="Add it as a draft, which runs leave out.")
@CORPUS
@OUTPUT
def add(
    file: str,
    output: str,
    expect: tuple[str, ...],
    source: tuple[str, ...],
    quote: tuple[str, ...],
    negative: bool,
    corpus: str | None,
    **fields: Any,
) -> None:
    """Add a question to the golden set FILE (.jsonl or .json); creates the file if needed.

    \b
    Examples:
      evaltrack golden add mine.jsonl --question "How do I install it?" --expect install --answer "pip install it"
      evaltrack golden add mine.jsonl --question "Who won the cup in 1954?" --negative

    Exits 2 if the corpus does not hold what the question expects, unless it is a draft.
    """
    from evaltrack.api.golden_sets import add_question

    if negative and (expect or source or quote):
        raise UsageError("--negative expects nothing; leave out --expect, --source and --quote")
    fields |= {
        "expected_chunks": [] if negative else list(expect) or None,
        "expected_sources": list(source) or None,
        "expected_passages": [{"quote": each} for each in quote] or None,
        "expected_answer": fields.pop("answer"),
        "draft": fields["draft"] or None,
    }
    expectations = ("expected_chunks", "expected_sources", "expected_passages", "expected_answer", "draft")
    if all(fields[name] is None for name in expectations):
        cure = "give --expect, --source, --quote, --negative or --answer, or add it as a --draft"
        raise UsageError(f"the question expects nothing; {cure}")
    made = add_question(file, corpus=corpus or None, **fields)
    if output == "json":
        print_json(made.model_dump(mode="json", exclude_defaults=True))
    else:
        click.echo(f"{file}: question {made.id} added")


NUMBER = click.IntRange(0, 10_000)


@golden.command()
@FILE
@click.option("--corpus", required=True, help="Folder of pages.")
@click.option("--number", default=30, show_default=True, type=NUMBER, help="Number of questions with an answer.")
@click.option("--negatives", default=5, show_default=True, type=NUMBER, help="Number that the pages do not answer.")
@click.option("--chunk", default="heading", show_default=True, help="heading or words:SIZE[:OVERLAP].")
@click.option("--model", required=True, help="Model that writes the questions; key and server as for judges.")
@click.option("--category", multiple=True, help="Category of the questions; repeatable, in turn.")
@OUTPUT
def draft(file: str, model: str, category: tuple[str, ...], output: str, **options: Any) -> int:
    """Let a model propose questions on a corpus, as drafts at the end of FILE.

    \b
    Examples:
      evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini
      evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini --number 60 --negatives 10
      evaltrack golden draft mine.jsonl --corpus docs --model gpt-4o-mini --category usage --category troubleshooting

    The model writes question, quotation and answer; the quotation must be in the chunk word for word. Reword them, and
    remove `draft` from the good ones: no run asks a draft. Exits 1 if every proposal was left out.
    """
    from evaltrack.api.draft_by_model import draft_by_model
    from evaltrack.api.progress_bar import shown_progress

    with shown_progress(choice=True) as progress:
        show = partial(progress.note, "proposing")
        try:
            made = draft_by_model(file, model=model, categories=category, on_progress=show, **options)
        except KeyboardInterrupt:
            kept = f"the valid proposals are in {file}; run the same command to continue"
            raise KeyboardInterrupt(kept) from None
    if output == "json":
        print_json([each.model_dump(mode="json", exclude_defaults=True) for each in made.questions])
    else:
        _print_drafts(file, made.questions)
    _print_ledger(file, made)
    return EXIT_MISSED if made.left_out and not made.questions else 0


def _print_drafts(file: str, questions: Sequence[Question]) -> None:
    for each in questions:
        click.echo(f"{one_line(each.id)}  {one_line(each.question)}  {click.style(each.category or '', dim=True)}")
    drafts = f"{count(len(questions), 'draft')} added ({count(sum(each.negative for each in questions), 'negative')})"
    click.echo(f"{file}: {drafts}; confirm each of them", err=True)


def _print_ledger(file: str, made: ModelDrafts) -> None:
    lines = list(made.notes)
    if made.already:
        drafts = f"{count(made.already, 'draft')} of this model before"
        lines.append(f"{file} had {drafts}; {verb(made.already, 'it counts', 'they count')}")
    lines += [f"left out: {number}: {reason}" for reason, number in made.left_out.most_common()]
    if made.usage:
        tokens = f"{made.usage.prompt_tokens:,} prompt and {made.usage.completion_tokens:,} completion tokens"
        lines.append(tokens)
    for line in lines:
        click.echo(f"  {one_line(line)}", err=True)


FORMAT_NAMES = (
    *("trec", "beir", "table", "promptfoo", "ragas", "deepeval"),
    *("llamaindex", "autorag", "phoenix", "langfuse", "inspect", "mlflow"),
)
FORMAT = click.Choice(["auto", *FORMAT_NAMES])
PASSAGES_HELP = "Where to look up the expected sources: a folder of pages, or a .jsonl or .parquet file of passages."


@golden.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option("--from", default="auto", show_default=True, type=FORMAT, help="Format; auto looks at the content.")
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The golden set to write, a .jsonl.")
@click.option("--map", multiple=True, help="Column or JMESPath that holds a field: FIELD=PATH; repeatable.")
@click.option("--separator", default=";", show_default=True, help="Separator of ids in one cell.")
@click.option(
    "--encoding", default="", help="Encoding of text files.  [default: UTF-8, or the byte order mark decides]"
)
@click.option("--corpus", default="", help=PASSAGES_HELP)
@click.option("--domain", default="", help="Domain for questions without one.")
@click.option("--id-prefix", default="", help="Prefix to add to each id.")
@click.option("--force", is_flag=True, help="Replace an existing golden set.")
@OUTPUT
def import_command(
    files: tuple[str, ...], output_file: str, corpus: str, force: bool, output: str, **options: Any
) -> None:
    """Convert files from another tool into a golden set; unknown columns go to `metadata`.

    \b
    Examples:
      evaltrack golden import topics.txt qrels.txt -o mine.jsonl            TREC: topics and judgements
      evaltrack golden import datasets/scifact -o scifact.jsonl             BEIR: the folder
      evaltrack golden import promptfooconfig.yaml -o mine.jsonl
      evaltrack golden import testset.csv --from ragas --corpus docs -o mine.jsonl
      evaltrack golden import traces:production -o asked.jsonl              questions users asked your app, in MLflow
      evaltrack golden import questions.xlsx -o mine.jsonl --map question=Query --map expected_chunks=doc_ids
      evaltrack golden import asked.json -o mine.jsonl --map "expected_sources=sources[].filename"
      evaltrack golden import dataset:travel -o travel.jsonl                an MLflow dataset

    Exits 2 if any line is not a valid question; all bad lines are listed, and nothing is written.
    """
    from evaltrack.api.import_golden import import_golden

    form, options["fields"] = options.pop("from"), _mapped_fields(options.pop("map"))
    made = import_golden(files, output_file, form, corpus=corpus or None, force=force, **options)
    if output == "json":
        print_json({**asdict(made), "path": str(made.path)})
        return
    click.echo(
        f"{made.path} ({made.form}): {count(made.questions, 'question')}, {count(made.negatives, 'negative')}, "
        f"{made.judged_only:,} without expected sources"
    )
    for note in made.notes:
        click.echo(f"  {with_options(note)}", err=True)


def _mapped_fields(pairs: tuple[str, ...]) -> dict[str, str]:
    """Parse `FIELD=PATH` pairs. A path may contain `=`."""
    fields: dict[str, str] = {}
    for pair in pairs:
        field, sign, path = pair.partition("=")
        if not sign or not field.strip() or not path.strip():
            raise UsageError(f"--map {pair}: write FIELD=PATH, e.g. question=Query")
        fields[field.strip().replace("-", "_")] = path.strip()
    return fields
