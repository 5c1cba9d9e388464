"""`evaltrack golden import`: golden sets of other tools."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json, result_is_in
from evaltrack.errors import UsageError
from evaltrack.records.amount import count, verb

FORMAT_NAMES = (
    *("trec", "beir", "table", "promptfoo", "ragas", "deepeval"),
    *("llamaindex", "autorag", "phoenix", "langfuse", "inspect", "mlflow"),
)

IMPORT_EXAMPLES = """\b
Examples:
  evaltrack golden import topics.txt qrels.txt -o mine.jsonl            TREC: topics and judgements
  evaltrack golden import datasets/scifact -o scifact.jsonl             BEIR: the folder
  evaltrack golden import promptfooconfig.yaml -o mine.jsonl
  evaltrack golden import testset.csv --from ragas --corpus docs -o mine.jsonl
  evaltrack golden import traces:production -o asked.jsonl              what an application was asked, from MLflow
  evaltrack golden import questions.xlsx -o mine.jsonl --map question=Query --map expected_chunks=doc_ids
  evaltrack golden import asked.json -o mine.jsonl --map "expected_sources=sources[].filename"
  evaltrack golden import dataset:travel -o travel.jsonl                a dataset of MLflow
"""


@click.command(name="import", epilog=IMPORT_EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path())
@click.option(
    "--from",
    "form",
    default="auto",
    show_default=True,
    type=click.Choice(["auto", *FORMAT_NAMES]),
    help="Format of the files; auto looks at their content.",
)
@click.option("-o", "--output-file", required=True, type=click.Path(), help="The golden set to write, a .jsonl.")
@click.option("--map", "fields", multiple=True, help="Column or JMESPath that holds a field: FIELD=PATH; repeatable.")
@click.option("--separator", default=";", show_default=True, help="What is between the ids in one cell.")
@click.option("--encoding", default="", help="Encoding of text files.  [default: UTF-8, or as their first bytes say]")
@click.option("--corpus", default="", help="Folder of pages, or .jsonl or .parquet of passages, with what is expected.")
@click.option("--domain", default="", help="Domain of the questions that have none.")
@click.option("--id-prefix", default="", help="Text to put before each id.")
@click.option("--force", is_flag=True, help="Replace the golden set if it is there.")
@output_option()
def import_command(
    files: tuple[str, ...], form: str, output_file: str, corpus: str, force: bool, output: str, **options: Any
) -> None:
    """Write a golden set out of FILES of another tool; what has no field is kept in `metadata`.

    Exits 2 if any line is no question; all of them are listed, and nothing is written.
    """
    from evaltrack.api.import_golden import import_golden, import_traces

    options["fields"] = _fields(options["fields"])
    if any(each.startswith("traces:") for each in files):
        if len(files) > 1:
            raise click.UsageError("traces: are imported alone; name them and no other file")
        made = import_traces(files[0], output_file, domain=options["domain"], force=force)
    else:
        made = import_golden(files, output_file, form, corpus=corpus or None, force=force, **options)
    result_is_in(output_file)
    if output == "json":
        print_json({**asdict(made), "path": str(made.path)})
        return
    click.echo(
        f"{made.path} ({made.form}): {count(made.questions, 'question')}, {count(made.negatives, 'negative')}, "
        f"{made.judged_only:,} that {verb(made.judged_only, 'expects', 'expect')} nothing of retrieval"
    )
    for note in made.notes:
        click.echo(f"  {note}", err=True)


def _fields(pairs: tuple[str, ...]) -> dict[str, str]:
    """`FIELD=PATH` each; a path may hold further signs."""
    fields: dict[str, str] = {}
    for pair in pairs:
        field, sign, path = pair.partition("=")
        if not sign or not field.strip() or not path.strip():
            raise UsageError(f"--map {pair}: write FIELD=PATH, e.g. question=Query")
        fields[field.strip().replace("-", "_")] = path.strip()
    return fields
