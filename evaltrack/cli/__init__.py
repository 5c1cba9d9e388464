"""Defines the command `evaltrack` and turns every outcome into an exit code.

Commands are imported only when they are called. Exit codes: 0 done, 1 regression or requirement missed, 2 wrong usage,
3 the result is unknown, 130 interrupted.
"""

from __future__ import annotations

import atexit
import gc
import logging
import os
import sys
import traceback
from functools import partial
from typing import Any

import click

from evaltrack import __version__
from evaltrack.cli.output import code_after_output, commandless_output, is_file, with_options
from evaltrack.errors import EXIT_INCONCLUSIVE, EXIT_INTERRUPTED, BadLinesError, EvaltrackError, UsageError, printable
from evaltrack.privacy.addresses import shown_text

COMMANDS = {
    "init": ("evaltrack.cli.project:init", "Start a project: settings, a golden set, a target and a CI file."),
    "run": ("evaltrack.cli.run:run", "Evaluate a target on a golden set, as one MLflow run."),
    "resume": ("evaltrack.cli.run:resume", "Resume an interrupted evaluation."),
    "sweep": ("evaltrack.cli.run:sweep", "Evaluate every combination of targets, settings and k, and rank them."),
    "compare": ("evaltrack.cli.compare:compare", "Compare a run with a baseline, question by question: the gate."),
    "report": ("evaltrack.cli.compare:report", "Write the page of a run, or of several runs, as HTML."),
    "baseline": ("evaltrack.cli.compare:baseline", "Set, show and clear the runs that others are compared with."),
    "judge": ("evaltrack.cli.judge:judge", "Replay a judge, compare it with people, accept a failed question."),
    "rubric": ("evaltrack.cli.judge:rubric", "Show the reasoning rubric: anchors, coupling, tiers, gates and aims."),
    "index": ("evaltrack.cli.ask:index", "List the chunks of a folder of pages, with their ids."),
    "ask": ("evaltrack.cli.ask:ask", "Ask a target one question, and show its ranked sources."),
    "golden": ("evaltrack.cli.golden:golden", "Create and check golden sets."),
    "cache": ("evaltrack.cli.judge:cache", "Clear cached verdicts."),
    "schema": ("evaltrack.cli.project:schema", "Print the JSON Schema of a file or an output."),
    "ui": ("evaltrack.cli.ui:ui", "Serve MLflow with evaltrack's page on this machine."),
    "doctor": ("evaltrack.cli.project:doctor", "Show versions and settings, and test writing to MLflow."),
}
"""The module and the short help of each command, so that `--help` imports none of them."""

SELDOM = (400_000, 20, 20)
"""Thresholds of Python's garbage collector. Its defaults take a tenth of the time of a run."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command called `cmd_name`."""
        if cmd_name not in COMMANDS:
            return None
        from importlib import import_module

        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            UsageError: there is no such command.
        """
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from evaltrack.records.config import did_you_mean

            raise UsageError(f"there is no command `{args[0][:80]}`; {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, short) for name, (_, short) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={
        "auto_envvar_prefix": "EVALTRACK",
        "help_option_names": ["-h", "--help"],
        "max_content_width": 110,
    },
    epilog="Start with:  evaltrack run --demo, or in your own project:  evaltrack init",
)
@click.option("--config", default="", help="Settings file to read instead of evaltrack.toml and pyproject.toml.")
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, config: str) -> None:
    """Evaluate RAG retrievers, agents and LLM reasoning as MLflow runs.

    Set an option with the environment variable EVALTRACK_<COMMAND>_<NAME>, or in evaltrack.toml or pyproject.toml. Use
    --config or EVALTRACK_CONFIG to read another settings file.
    """
    from evaltrack.cli.options import defaults_of
    from evaltrack.evaluation.settings_sources import read_settings, table_place
    from evaltrack.records.config import did_you_mean

    os.environ.setdefault("MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR", "false")  # it would disturb our own
    if not os.environ.get("EVALTRACK_DEBUG"):
        # MLflow logs errors of its database with their tracebacks before it raises them
        logging.getLogger("mlflow.store.db.utils").addFilter(lambda record: record.levelno < logging.ERROR)
    if config:
        os.environ["EVALTRACK_CONFIG"] = config
        ctx.call_on_close(partial(os.environ.pop, "EVALTRACK_CONFIG", None))
    settings, name = read_settings(), ctx.invoked_subcommand or ""
    for table in settings:
        if table not in COMMANDS:
            raise UsageError(f"{table_place(table)}: there is no command `{table}`; {did_you_mean(table, COMMANDS)}")
    if command := cli.get_command(ctx, name):
        ctx.default_map = {name: defaults_of(command, settings.get(name, {}), name)}


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code. Tracebacks are shown only if EVALTRACK_DEBUG is set."""
    gc.set_threshold(*SELDOM)
    # else Python searches MLflow's objects for garbage at exit, which takes most of a second
    atexit.register(gc.freeze)
    with commandless_output():
        code = code_after_output(_run(arguments))
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        code: Any = cli.main(arguments, prog_name="evaltrack", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except EvaltrackError as error:
        message = str(error)
        if isinstance(error, BadLinesError) and is_file(sys.stderr):
            message = "\n".join(error.problems)  # a log file gets all problems
        shown = "\n".join(map(printable, with_options(message).split("\n")))
        click.secho(f"Error: {shown_text(shown)}", err=True, fg="red")
        if error.guide:
            click.echo(error.guide.reference, err=True)
        return error.exit_code
    except SystemExit:  # a user's function may exit with 0
        return EXIT_INCONCLUSIVE
    except click.exceptions.Exit as error:
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort) as error:
        click.echo(f"Interrupted: {error.__cause__ or error}".removesuffix(": "), err=True)
        return EXIT_INTERRUPTED
    except Exception as error:
        if os.environ.get("EVALTRACK_DEBUG"):
            traceback.print_exc()
            return EXIT_INCONCLUSIVE
        click.secho(f"Error: internal: {type(error).__name__}: {shown_text(str(error))}", err=True, fg="red")
        click.echo("This is a bug in evaltrack; please report it with the output under EVALTRACK_DEBUG=1.", err=True)
        return EXIT_INCONCLUSIVE
