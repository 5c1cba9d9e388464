"""A comparison as GitHub-flavoured Markdown: a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from evaltrack.compare.change import CAUSES, Change
from evaltrack.compare.comparison import Comparison
from evaltrack.records.amount import count
from evaltrack.report.comparison.counts import (
    counts_words,
    group_cell,
    group_flips,
    group_words,
    sections,
    shown_groups,
)
from evaltrack.report.comparison.culprit_words import behind_line, several_causes
from evaltrack.report.comparison.headline import difference_words, headline_words
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.rules import MARKS, reruns_words, rules_words
from evaltrack.report.comparison.words import (
    answers,
    cause_rest,
    cause_words,
    change_words,
    criteria_words,
    delta_cell,
    drop_words,
    dropped_words,
    interval_words,
    ranked_sources,
    remark_words,
    shown_metrics,
    sides_words,
    threshold_words,
)
from evaltrack.report.github_markdown import Page, address, code, diff_markdown, inert, link, raw_html, sentence
from evaltrack.report.word_diff import condensed, word_diff
from evaltrack.report.words import clip, metric_course, metric_title

SMALLEST = 2_000
"""Bytes below which not even the head of a page is sure to fit."""

NOTE = 160
"""Bytes kept free for the title of a section and for how many of it were left out."""

ITEM = 800
"""Bytes kept free for each question of the sections that follow, up to an eighth of what is left."""

CAUSE = 800
"""Characters of why a question changed, with what differs besides."""

DETAILED = 25
LISTED = 200
SHOWN_GROUPS = 20
SHOWN_SOURCES = 10


def comparison_markdown(comparison: Comparison, limit: int = 65_000) -> str:
    """The page, always below `limit` bytes of UTF-8, as a comment on GitHub may have 65,536 characters.

    It starts with `marker`, by which an earlier comment is found and replaced. Seen at once are the headline, the rules
    of the gate and a table of the questions that broke; all else is folded. What does not fit is left out, from the end
    of each list of questions, and counted.

    Raises:
        ValueError: `limit` is below 2,000.
    """
    if limit < SMALLEST:
        raise ValueError(f"limit is {limit}; it must be at least {SMALLEST} bytes")
    page, parts, k = Page(limit), list(sections(comparison)), comparison.candidate.signature.k
    page.add(marker(comparison.candidate.signature.golden))
    page.add(f"### {inert(headline_words(comparison), 400)}\n")
    for block in _head(comparison):
        page.add(block, reserve=NOTE * len(parts))
    folds = list(_folds(comparison))
    for place, (fate, title, changes, total) in enumerate(parts):
        later = sum(NOTE + min(page.room // 8, ITEM * len(others)) for _, _, others, _ in parts[place + 1 :])
        later += min(page.room // 4, sum(len(fold.encode()) for fold in folds)) if place == 0 else 0
        items = _broken(changes, comparison) if fate == "broke" else (_item(change, k) for change in changes[:LISTED])
        _add_section(page, title, total, items, later, folded=fate != "broke")
        if place == 0:
            folds = [fold for fold in folds if not page.add(fold, NOTE * len(parts))] if fate == "broke" else folds
    for fold in folds:
        page.add(fold)
    _add_details(page, comparison)
    return str(page)


def _add_section(page: Page, title: str, total: int, items: Iterable[str], reserve: int, *, folded: bool) -> None:
    """A list of questions as long as they fit, and how many were left out."""
    heading = f"{title[0].upper()}{title[1:]}: {total:,}"
    page.add(f"\n<details><summary>{heading}</summary>\n" if folded else f"\n#### {heading}\n")
    num_added = 0
    for item in items:
        if not page.add(item, reserve + NOTE):
            break
        num_added += item.count("\n") == 0
    if total > num_added:
        page.add(f"\n… and {total - num_added:,} more, left out here")
    if folded:
        page.add("\n</details>")


def _broken(changes: Sequence[Change], comparison: Comparison) -> Iterator[str]:
    """The table of the questions that broke; its head is one block of two lines."""
    k = comparison.candidate.signature.k
    yield "| question | why | scores |\n| --- | --- | --- |"
    for change in changes[:LISTED]:
        name = f"{code(change.id, 80)} {inert(f'{clip(change.domain, 40)}{remark_words(change)}', 340)}"
        question = f"{inert(change.question)}<br>{name}" if change.question else name
        why = f"{CAUSES[change.cause.kind].title}{_rest(change)}"
        scores = inert(dropped_words(change, k))
        yield f"| {question} | {why}{address(change.cause.link, 'source')} | {scores} |"


def _add_details(page: Page, comparison: Comparison) -> None:
    """Answers and sources of the first questions that broke, where there is room."""
    details = [_details(change, comparison.candidate.signature.k) for change in comparison.flips[:DETAILED]]
    closing = "\n</details>"
    some = f", the first {len(details)}" if len(details) < comparison.count("broke") else ""
    opening = f"\n<details><summary>Answers and sources of what broke{some}</summary>\n"
    if not details or not page.add(opening, len(details[0].encode()) + NOTE):
        return
    for each in details:
        if not page.add(each, NOTE):
            break
    page.add(closing)


def marker(golden: str) -> str:
    """The hidden first line of every page on this golden set, the same from run to run."""
    name = quote(clip(golden, 80), safe=" ").replace("--", "-%2D")
    return f"<!-- evaltrack:{name} -->"


def _head(comparison: Comparison) -> Iterator[str]:
    if behind := behind_line(comparison):
        yield f"{inert(behind, 600)}\n"
    yield f"{inert(sides_words(comparison), 900)}{_links(comparison)}\n"
    if differences := difference_words(comparison):
        yield f"What differs: {inert(differences, 1500)}\n"
    for state, words in rules_words(comparison):
        yield f"- {MARKS[state]} {inert(words, 300)}"
    if chance := reruns_words(comparison):
        yield f"\n{inert(chance, 500)}"
    if summary := several_causes(comparison):
        yield f"\n{sentence(summary, 1000)}"


def _folds(comparison: Comparison) -> Iterator[str]:
    """Metrics, groups and notes, each folded and whole."""
    if comparison.metrics:
        yield _fold(f"Metrics: {len(comparison.metrics)}", "\n".join(_metrics(comparison)))
    if groups := shown_groups(comparison)[0]:
        yield _fold(f"Domains, difficulties and categories: {len(groups):,}", "\n".join(_groups(comparison)))
    notes = [criteria_words(pair) for pair in comparison.criteria]
    notes += [counts_words(comparison), *note_words(comparison)]
    yield _fold(f"Notes: {len(notes)}", "\n".join(f"- {inert(note, 300)}" for note in notes))


def _fold(title: str, body: str) -> str:
    return f"\n<details><summary>{title}</summary>\n\n{body}\n\n</details>"


def _links(comparison: Comparison) -> str:
    links = {
        "candidate": comparison.candidate.link,
        "baseline": comparison.baseline.link,
        "side by side in MLflow": comparison.compare_link,
    }
    all_links = [linked for words, url in links.items() if (linked := link(words, url)) != words]
    return f" ({', '.join(all_links)})" if all_links else ""


def _metrics(comparison: Comparison) -> Iterator[str]:
    yield "| metric | baseline | candidate | change | 95 % interval | questions | better / worse | may get worse by |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for metric in shown_metrics(comparison):
        title = metric_title(metric.name, comparison.candidate.signature.k)
        was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
        cells = (
            f"**{title}**" if metric.regressed else title,
            was,
            now,
            f"{delta_cell(metric)}{drop_words(metric)}",
            interval_words(metric),
            f"{metric.n:,}",
            f"{metric.wins:,} / {metric.losses:,}",
            f"**{threshold_words(metric)}**" if metric.regressed else threshold_words(metric),
        )
        yield f"| {' | '.join(cells)} |"


def _groups(comparison: Comparison) -> Iterator[str]:
    groups, names = shown_groups(comparison)
    titles = [metric_title(name, comparison.candidate.signature.k) for name in names]
    flips = ("flips",) if comparison.passing_compared else ()
    yield f"| {' | '.join(('group', 'questions', *titles, *flips))} |"
    yield f"| --- |{' ---: |' * (len(names) + 1 + len(flips))}"
    for group in groups[:SHOWN_GROUPS]:
        cells = [f"{group.num_questions:,}", *(group_cell(group, name) for name in names)]
        cells += [group_flips(group)] if flips else []
        yield f"| {inert(group_words(group))} | {' | '.join(cells)} |"
    if len(groups) > SHOWN_GROUPS:
        yield f"\n… and {count(len(groups) - SHOWN_GROUPS, 'more group')}"


def _item(change: Change, k: int) -> str:
    question = f" Asked: {inert(change.question)}" if change.question else ""
    scores = f" Scores: {inert(score_words)}." if (score_words := dropped_words(change, k)) else ""
    why = f"{_rest(change)}{address(change.cause.link, 'source')}"
    return f"- {inert(change_words(change))}{why}.{scores}{question}"


def _rest(change: Change) -> str:
    """What the cause says besides its title, to stand behind that."""
    joint, words = cause_rest(change)
    return f"{joint}{sentence(words, CAUSE)}"


def _details(change: Change, k: int) -> str:
    parts = [f"\n<details><summary>{raw_html(change_words(change))}</summary>\n"]
    if change.question:
        parts.append(f"**Asked:** {inert(change.question, 300)}\n")
    parts.append(f"**Why:** {sentence(cause_words(change), CAUSE)}{address(change.cause.link, 'source')}\n")
    if scores := dropped_words(change, k):
        parts.append(f"**Scores:** {inert(scores)}\n")
    if pair := answers(change):
        parts.append(f"**Answer:** {diff_markdown(condensed(word_diff(*pair)))}\n")
    parts += _sources(change, k)
    parts.append("</details>\n")
    return "\n".join(parts)


def _sources(change: Change, k: int) -> Iterator[str]:
    """Both ranked lists side by side, down to the ranks that matter; what was expected is bold."""
    depth = min(max(k, change.cause.rank_before or 0, change.cause.rank_after or 0), SHOWN_SOURCES)
    before, after = (ranked_sources(row, depth) for row in (change.before, change.after))
    if not before and not after:
        return
    yield "| rank | baseline | candidate |"
    yield "| ---: | --- | --- |"
    for place in range(max(len(before), len(after))):
        cells = (_source(*side[place]) if place < len(side) else "" for side in (before, after))
        yield f"| {place + 1} | {' | '.join(cells)} |"
    yield ""


def _source(name: str, expected: bool) -> str:
    return f"**{code(name)}**" if expected else code(name)
