"""`recorded:FILE`: responses gathered earlier.

JSON Lines (`evaltrack.targets.recorded_lines`), a TREC run (`evaltrack.targets.trec_run`), or results of another tool
and rows of an earlier run; `results` reads these. Their format is the only one that the columns or keys of the first
rows show, or the setting `format`.
"""

from __future__ import annotations

from pathlib import Path

from evaltrack.errors import Guide, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Target
from evaltrack.records.json_text import GZIP, other_encoding
from evaltrack.targets import no_more_settings
from evaltrack.targets.line_index import numbered_lines
from evaltrack.targets.recorded_lines import RecordedLines
from evaltrack.targets.results.detection import FORMATS, LINES, TREC
from evaltrack.targets.results.files import TABLES, is_other_form
from evaltrack.targets.results.paired import VARIANTS, Choice, PairedResults
from evaltrack.targets.trec_run import TrecRun

SETTINGS = ("format", "corpus", "question", "pair", *VARIANTS)


def open_recorded(place: str, settings: dict[str, str]) -> Target:
    """Check the file from end to end and index it by question.

    Settings: `format` (a format of `results.forms.FORMATS`, in place of what the content shows); of results of other
    tools also `corpus` (folder of pages or file of passages in which their texts have ids), `question` (name of the
    variable or column that holds it), `pair` (`id` or `text`, by which alone results find their questions), and
    `provider`, `prompt`, `epoch`, `trial`, which choose one of several results of a question.

    Raises:
        UsageError: it cannot be read, or has bad lines; they are listed. Or its format cannot be told.
    """
    choice = _choice(settings)
    path = Path(place)
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise UsageError(f"recorded target {path}: is not a regular file (a pipe?); save it, it is read twice")
        start = next((text for _, _, text in numbered_lines(path)), None)
    except OSError as error:
        raise UsageError(
            f"recorded target {path}: cannot be read: {error.strerror}; name a file of responses",
            guide=Guide.RECORDED,
        ) from None
    if start is None:
        raise UsageError(f"recorded target {path}: is empty; write one JSON object a line, or a TREC run")
    may_be_wide = path.suffix.lower() in TABLES  # UTF-16 is read there
    if (words := other_encoding(start)) and (start.startswith(GZIP) or not may_be_wide):
        raise UsageError(f"recorded target {path}: {words}")
    if choice.format not in ("", LINES, TREC) or (not choice.format and is_other_form(path, start)):
        return PairedResults(path, start, choice)
    if choice.format == LINES and start.startswith(b"["):
        return PairedResults(path, start, choice)
    if given := [name for name in SETTINGS[1:] if _given(choice, name)]:
        raise UsageError(f"recorded target {path}: setting `{given[0]}` is for results of other tools, which it is not")
    is_lines = choice.format == LINES or (not choice.format and start.startswith(b"{"))
    return RecordedLines(path) if is_lines else TrecRun(path)


def _choice(settings: dict[str, str]) -> Choice:
    """The settings; those that a recording does not know are refused."""
    values = {name: settings.pop(name, "") for name in SETTINGS}
    no_more_settings("recorded", settings, ", ".join(SETTINGS))
    form, pair = values["format"], values["pair"]
    if form not in ("", *FORMATS):
        raise UsageError(f"recorded target: format is `{shown_text(form)}`; write one of {', '.join(FORMATS)}")
    if pair not in ("", "id", "text"):
        raise UsageError(f"recorded target: pair is `{shown_text(pair)}`; write id or text")
    variant = {name: values[name] for name in VARIANTS if values[name]}
    return Choice(form, values["corpus"], values["question"], pair, variant)  # type: ignore[arg-type]


def _given(choice: Choice, name: str) -> str:
    return choice.variant.get(name, "") if name in VARIANTS else getattr(choice, name)
