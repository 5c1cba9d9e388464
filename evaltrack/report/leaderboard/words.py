"""How a leaderboard is worded, the same in every rendering."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.leaderboard import ContenderMean, Group, Leaderboard, Standing
from evaltrack.records.amount import count
from evaltrack.report.words import METRIC_TITLES, number, one_line

NONE = "–"
LEAST_P = 0.001
UNITS = {"usd": "USD a question", "tokens": "tokens a question"}


def title_of(board: Leaderboard, metric: str) -> str:
    """The metric's name for people, with k where all configurations have one."""
    ks = {run.signature.k for each in board.standings for run in each.contender.runs}
    return METRIC_TITLES.get(metric, metric).replace("{k}", str(ks.pop()) if len(ks) == 1 else "k")


def table_titles(board: Leaderboard) -> list[str]:
    """The head of the table."""
    titles = ["#", "configuration"]
    for place, metric in enumerate(board.metrics):
        titles.append(title_of(board, metric))
        titles += ["difference, 95 %", "p"] if place == 0 else []
    titles += [UNITS[board.cost_unit]] if board.cost_unit else []
    titles += ["s a question"] if _timed(board) else []
    return titles


def table_cells(board: Leaderboard, group: Group, standing: Standing) -> list[str]:
    """The cells of one line; an unmeasured one is a dash."""
    cells = [NONE if standing.rank is None else str(standing.rank), one_line(standing.name, 120)]
    for place, metric in enumerate(board.metrics):
        mean = standing.means.get(metric)
        cells.append(NONE if mean is None else number(mean.value))
        cells += [against_words(group, standing, mean), p_words(standing.p_value)] if place == 0 else []
    cells += [cost_words(board, standing)] if board.cost_unit else []
    return cells + ([seconds_words(standing.contender.seconds)] if _timed(board) else [])


def _timed(board: Leaderboard) -> bool:
    return any(each.contender.seconds is not None for each in board.standings)


def against_words(group: Group, standing: Standing, mean: ContenderMean | None) -> str:
    """``-0.012 [-0.05, +0.03]``, or that it is the reference, or why it has no rank."""
    if standing.why_unranked:
        return standing.why_unranked
    if standing.name == group.reference:
        return "reference"
    return NONE if mean is None else difference_words(mean)


def difference_words(mean: ContenderMean) -> str:
    """``-0.012 [-0.05, +0.03]``; a dash where there is no difference to name."""
    if mean.delta is None:
        return NONE
    between = f" [{mean.interval[0]:+.3f}, {mean.interval[1]:+.3f}]" if mean.interval else ""
    return f"{mean.delta:+.3f}{between}"


def p_words(p_value: float | None) -> str:
    """``0.031``, ``< 0.001``."""
    return NONE if p_value is None else f"< {LEAST_P:g}" if p_value < LEAST_P else f"{p_value:.3f}"


def cost_words(board: Leaderboard, standing: Standing) -> str:
    """What one question costs."""
    if standing.cost is None:
        return NONE
    return f"{standing.cost:,.1f}" if board.cost_unit == "tokens" else f"{standing.cost:.6f}"


def seconds_words(seconds: float | None) -> str:
    """``0.120``, and of very short times three digits."""
    return NONE if seconds is None else f"{seconds:.3f}" if seconds >= 0.001 else f"{seconds:.2g}"


def spread_words(standing: Standing) -> str:
    """``0.71 to 0.75 over 3 seeds``; empty where there is one."""
    if standing.spread is None:
        return ""
    low, high = map(number, standing.spread)
    return f"{low} to {high} over {count(len(standing.contender.runs), 'seed')}"


def group_words(board: Leaderboard, group: Group) -> str:
    """What tells a group from the others, and over how many questions it is; empty where there is one alone."""
    if len(board.groups) == 1:
        return ""
    return f"{one_line(group.label, 200)} ({count(group.num_questions, 'question')})"


def board_notes(board: Leaderboard) -> Iterator[str]:
    """How the table is to be read, a sentence each."""
    if board.rank_by is None:
        yield "Nothing was measured."
        return
    over = f", over {count(board.groups[0].num_questions, 'question')}" if len(board.groups) == 1 else ""
    better = "highest" if board.higher_is_better else "lowest"
    those = over or ", in each group over the questions"
    yield f"Ranked by {title_of(board, board.rank_by)}, {better} first{those} that every ranked configuration measured."
    if board.tests:
        whole = "all pairs, as the data chose the best" if board.reference == "best" else "all configurations"
        yield (
            f"Differences are to the {board.reference} of each group; an interval is that of one difference alone, "
            f"p is exact and corrected for {count(board.tests, 'test')} (Holm: {whole})."
        )
    if len(board.groups) > 1:
        metric = title_of(board, board.rank_by)
        yield f"Groups measured {metric} in different ways, and are not compared with each other."
    for each in board.standings:
        if words := spread_words(each):
            yield f"Seeds of {one_line(each.name, 120)}: {words}."
