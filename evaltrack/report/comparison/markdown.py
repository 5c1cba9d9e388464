"""A comparison as GitHub-flavoured Markdown: a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from evaltrack.compare.comparison import Change, Comparison
from evaltrack.report.comparison.counts import counts_words, flips_words, sections
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.group_words import group_cell, group_flips, group_words, shown_groups
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.verdict_words import verdict_words
from evaltrack.report.comparison.words import (
    answers,
    cause_summary,
    cause_words,
    change_words,
    clip,
    criteria_words,
    delta_words,
    drop_words,
    dropped_words,
    interval_words,
    ranked_sources,
    reason_words,
    sides_words,
    threshold_words,
)
from evaltrack.report.github_markdown import Page, address, code, diff_markdown, inert, link, raw_html, sentence
from evaltrack.report.word_diff import condensed, word_diff
from evaltrack.report.words import metric_title, metric_value

SMALLEST = 2_000
"""Bytes below which not even the head of a page is sure to fit."""

NOTE = 160
"""Bytes kept free for the title of a section and for how many of it were left out."""

ITEM = 800
"""Bytes kept free for each question of the sections that follow, up to an eighth of what is left."""

DETAILED = 25
LISTED = 200
SHOWN_GROUPS = 20
SHOWN_SOURCES = 10


def comparison_markdown(comparison: Comparison, limit: int = 65_000) -> str:
    """The page, always below `limit` bytes of UTF-8, as a comment on GitHub may have 65,536 characters.

    It starts with `marker`, by which an earlier comment is found and replaced. What does not fit is left out, from the
    end of each list of questions, and counted.

    Raises:
        ValueError: `limit` is below 2,000.
    """
    if limit < SMALLEST:
        raise ValueError(f"limit is {limit}; it must be at least {SMALLEST} bytes")
    page = Page(limit)
    page.add(marker(comparison.candidate.signature.golden))
    page.add(f"### evaltrack: {verdict_words(comparison)}\n")
    parts = list(sections(comparison))
    for block in _head(comparison):
        page.add(block, reserve=NOTE * len(parts))
    for place, (fate, title, changes, total) in enumerate(parts):
        later = sum(NOTE + min(page.room // 8, ITEM * len(others)) for _, _, others, _ in parts[place + 1 :])
        page.add(f"\n#### {title.capitalize()}: {total:,}\n")
        detailed = DETAILED if fate == "broke" else 0
        num_added = _add_changes(page, changes, detailed, comparison.candidate.signature.k, later + NOTE)
        if total > num_added:
            page.add(f"\n… and {total - num_added:,} more, left out here")
    return str(page)


def marker(golden: str) -> str:
    """The hidden first line of every page on this golden set, the same from run to run."""
    name = quote(clip(golden, 80), safe=" ").replace("--", "-%2D")
    return f"<!-- evaltrack:{name} -->"


def _head(comparison: Comparison) -> Iterator[str]:
    yield f"{inert(sides_words(comparison), 900)}{_links(comparison)}\n"
    if differences := difference_words(comparison):
        yield f"What differs: {inert(differences, 1500)}\n"
    for reason in reason_words(comparison):
        yield f"- {inert(reason, 300)}"
    if summary := cause_summary(comparison):
        yield f"\n{sentence(summary, 1000)}"
    if comparison.metrics:
        yield "\n" + "\n".join(_metrics(comparison))
    yield f"\n{inert(counts_words(comparison), 300)}"
    yield f"\n{inert(flips_words(comparison))}\n"
    for pair in comparison.criteria:
        yield f"- {inert(criteria_words(pair))}"
    for note in note_words(comparison):
        yield f"- {inert(note, 300)}"
    if shown_groups(comparison)[0]:
        yield "\n".join(_groups(comparison))


def _links(comparison: Comparison) -> str:
    links = {
        "candidate": comparison.candidate.link,
        "baseline": comparison.baseline.link,
        "side by side in MLflow": comparison.compare_link,
    }
    all_links = [linked for words, url in links.items() if (linked := link(words, url)) != words]
    return f" ({', '.join(all_links)})" if all_links else ""


def _metrics(comparison: Comparison) -> Iterator[str]:
    yield "| metric | baseline | candidate | change | 95 % interval | questions | better / worse | tolerated |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for metric in comparison.metrics:
        title = metric_title(metric.name, comparison.candidate.signature.k)
        cells = (
            f"**{title}**" if metric.regressed else title,
            metric_value(metric.name, metric.baseline),
            metric_value(metric.name, metric.candidate),
            f"{delta_words(metric)}{drop_words(metric)}",
            interval_words(metric),
            f"{metric.n:,}",
            f"{metric.wins:,} / {metric.losses:,}",
            f"**{threshold_words(metric)}**" if metric.regressed else threshold_words(metric),
        )
        yield f"| {' | '.join(cells)} |"


def _groups(comparison: Comparison) -> Iterator[str]:
    groups, names = shown_groups(comparison)
    titles = [metric_title(name, comparison.candidate.signature.k) for name in names]
    yield f"\n<details><summary>Domains, difficulties and categories: {len(groups):,}</summary>\n"
    flips = ("flips",) if comparison.passing_compared else ()
    yield f"| {' | '.join(('group', 'questions', *titles, *flips))} |"
    yield f"| --- |{' ---: |' * (len(names) + 1 + len(flips))}"
    for group in groups[:SHOWN_GROUPS]:
        cells = [f"{group.num_questions:,}", *(group_cell(group, name) for name in names)]
        cells += [group_flips(group)] if flips else []
        yield f"| {inert(group_words(group))} | {' | '.join(cells)} |"
    if len(groups) > SHOWN_GROUPS:
        yield f"\n… and {len(groups) - SHOWN_GROUPS:,} more groups"
    yield "\n</details>\n"


def _add_changes(page: Page, changes: Sequence[Change], detailed: int, k: int, reserve: int) -> int:
    """Questions, the first ones with their details as long as these fit; how many were added."""
    num_added = 0
    for change in changes[:LISTED]:
        if num_added < detailed and not page.add(_details(change, k), reserve):
            detailed = 0
        if num_added >= detailed and not page.add(_item(change), reserve):
            break
        num_added += 1
    return num_added


def _item(change: Change) -> str:
    question = f" Asked: {inert(change.question)}" if change.question else ""
    scores = f" Scores: {inert(score_words)}." if (score_words := dropped_words(change)) else ""
    why = f"{sentence(cause_words(change), 400)}{address(change.cause.link, 'source')}"
    return f"- {inert(change_words(change))}: {why}.{scores}{question}"


def _details(change: Change, k: int) -> str:
    parts = [f"\n<details><summary>{raw_html(change_words(change))}</summary>\n"]
    if change.question:
        parts.append(f"**Asked:** {inert(change.question, 300)}\n")
    parts.append(f"**Why:** {sentence(cause_words(change), 400)}{address(change.cause.link, 'source')}\n")
    if scores := dropped_words(change):
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
