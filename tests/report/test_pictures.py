"""The pictures of a run: well-formed, complete, counted as the rows say, and only text where text is meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from evaltrack import RunResult, run_eval
from evaltrack.compare.ranks import first_rank
from evaltrack.metrics.aggregate import Summary
from evaltrack.metrics.reasoning import DIMENSIONS
from evaltrack.metrics.worst_domains import worst_domains
from evaltrack.records import Question, Row
from evaltrack.report.pictures import PICTURE_COLUMNS, run_pictures
from evaltrack.report.pictures.domains import domains_svg
from evaltrack.report.pictures.judge_scores import JudgeScores
from evaltrack.report.pictures.measure import JUDGED, REASONED, RECALL
from evaltrack.report.pictures.ranks import Ranks, rank_ends
from evaltrack.report.pictures.reasoning import BANDS, Calibration, dimensions_svg
from evaltrack.report.pictures.svg import BLUE, GREY, ORANGE, fitted
from evaltrack.report.pictures.tokens import DRAWN, TICKS, TokenPoints, log_range, log_ticks
from evaltrack.rows.reader import read_table
from evaltrack.rows.stored_row import StoredRow
from tests.conftest import REPO
from tests.report.test_run import EVIL, result
from tests.rows_file import rich_rows, written

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """What is written in a picture."""
    return ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]


def drawn(svg: str, kind: str) -> list[ET.Element]:
    """The shapes of a class."""
    return [each for each in ET.fromstring(svg).iter() if each.get("class") == kind and each.tag != f"{SVG}text"]


def flat(place: int = 0, **fields: Any) -> StoredRow:
    """What pictures read of a row: found at rank 1, judged 0.9, 100 tokens."""
    made = {
        "id": str(place),
        "passed": True,
        "recall_at_k": 1.0,
        "reciprocal_rank": 1.0,
        "overall_score": 0.9,
        "reasoning_score": None,
        "num_tokens": 100.0,
        "expected": ["a"],
        "by_title": False,
        "sources": [{"chunk_id": "a", "title": None}],
        "trials": None,
        "claimed_band": None,
        "earned_band": None,
    }
    return StoredRow.of(made | fields)


def sources(*ids: str | None) -> list[dict[str, str | None]]:
    """Sources by chunk id."""
    return [{"chunk_id": each, "title": None} for each in ids]


def filled(picture: Any, rows: Iterable[StoredRow]) -> str:
    """A picture of these rows."""
    for row in rows:
        picture.add(row.columns())
    return str(picture.svg())


def summed(*questions: tuple[str, dict[str, float]], k: int = 5) -> RunResult:
    """The result of questions with a domain and scores each."""
    summary = Summary(k)
    for place, (domain, scores) in enumerate(questions):
        question = Question(id=str(place), question="q", domain=domain)
        passed = bool(scores["pass"]) if "pass" in scores else None
        summary.add(Row(position=place, question=question, scores=scores, passed=passed, started_at=0, seconds=0))
    totals = {**result().totals, "num_questions": len(questions)}
    return result(metrics=summary.metrics, counts=summary.counts, groups=summary.groups, totals=totals)


# A run


def test_a_run_holds_pictures_whose_numbers_are_those_of_its_rows(store_uri: str) -> None:
    """Travel, counted by hand from the rows: ranks, outcomes, and the domain's means with their counts."""
    import mlflow

    made = run_eval(REPO / "golden/travel.jsonl", judge="none", traces="off")
    client = mlflow.MlflowClient(store_uri)
    names = [each.path for each in client.list_artifacts(made.run_id, "pictures")]
    assert names == ["pictures/domains.svg", "pictures/ranks.svg", "pictures/tokens.svg"]
    svgs = {name: Path(client.download_artifacts(made.run_id, name)).read_text("utf-8") for name in names}

    ranks: Counter[str] = Counter()
    for row in made.rows:
        if row["expected"]:
            place = next((i for i, source in enumerate(row["sources"], 1) if source["finds"]), 0)
            ranks["not returned" if not place else "beyond k" if place > 5 else str(place)] += 1
    written = texts(svgs["pictures/ranks.svg"])
    for label in [*"12345", "beyond k", "not returned"]:
        shown = written[written.index(label) + 1]
        assert shown == f"{ranks[label]} ({100 * ranks[label] / ranks.total():.1f} %)"
    assert "not in the picture: 3 of 63 questions (retrieval was not measured)" in written

    recalls = [row["recall_at_k"] for row in made.rows if row["recall_at_k"] is not None]
    passed = [row["passed"] for row in made.rows]
    domains = texts(svgs["pictures/domains.svg"])
    assert f"{sum(recalls) / len(recalls):.3f}, n {len(recalls)}" in domains
    assert f"{100 * sum(passed) / len(passed):.1f} %, n {len(passed)}" in domains

    points = [row for row in made.rows if row["recall_at_k"] is not None and row["num_tokens"]]
    outcomes = Counter(row["passed"] for row in points)
    assert f"passed: {outcomes[True]}" in texts(svgs["pictures/tokens.svg"])
    assert len(drawn(svgs["pictures/tokens.svg"], "passed")) == outcomes[True] + 1  # and one in the legend
    assert len(drawn(svgs["pictures/tokens.svg"], "failed")) == outcomes[False] + 1
    note = client.get_run(made.run_id).data.tags["mlflow.note.content"]
    assert all(f"/artifacts/{name})" in note for name in names)


def test_a_run_on_reasoning_has_its_own_scale(store_uri: str) -> None:
    """Scores of 100, its threshold of 70, and its two pictures beside the others; nothing of retrieval."""
    made = run_eval(REPO / "golden/reasoning.jsonl", rubric="reasoning", traces="off")
    pictures = run_pictures(made, made.read_table(), 0.75)
    assert sorted(pictures) == ["calibration.svg", "dimensions.svg", "domains.svg", "judge_scores.svg", "tokens.svg"]
    assert "passes from 70" in texts(pictures["judge_scores.svg"])
    assert "100" in texts(pictures["judge_scores.svg"])
    assert "Reasoning score" in texts(pictures["domains.svg"])
    scores = [row["reasoning_score"] for row in made.rows]
    binned = Counter(min(int(score // 10), 9) for score in scores)
    counts = [shape for shape in drawn(pictures["judge_scores.svg"], "bar") if float(shape.get("height", "")) > 0]
    assert len(counts) == len(binned)
    assert (
        f"{sum(score >= 70 for score in scores)} at 70 or above, {sum(score < 70 for score in scores)} below"
        in texts(pictures["judge_scores.svg"])
    )


def test_rows_are_read_once() -> None:
    """All pictures come of one pass, over rows that can be had only once, of which none is held."""
    passes = 0

    def once() -> Iterator[dict[str, Any]]:
        nonlocal passes
        passes += 1
        for place in range(5):
            yield flat(place).columns()

    made = replace(
        summed(*[("d", {"recall_at_k": 1.0, "overall_score": 0.9, "pass": 1.0})] * 5), signature=result().signature
    )
    pictures = run_pictures(made, once(), 0.75)
    assert passes == 1
    assert sorted(pictures) == ["domains.svg", "judge_scores.svg", "ranks.svg", "tokens.svg"]


def test_pictures_need_few_columns(tmp_path: Path) -> None:
    """They are the same from the columns that they name as from all of them."""
    rows = rich_rows()
    path = written(rows, tmp_path / "rows.parquet")
    made = replace(
        summed(*[("d", {"recall_at_k": 0.5, "overall_score": 0.75, "pass": 1.0})] * 3), signature=result().signature
    )
    pictures = run_pictures(made, read_table(path, PICTURE_COLUMNS), 0.75)
    assert pictures == run_pictures(made, read_table(path), 0.75)
    assert pictures == run_pictures(made, [row.columns() for row in rows], 0.75)
    assert sorted(pictures) == ["domains.svg", "judge_scores.svg", "ranks.svg", "tokens.svg"]


def test_what_measured_nothing_has_no_picture() -> None:
    """No rows, or rows that all failed: no picture at all."""
    nothing = result(metrics={}, counts={}, groups={"d": {}})
    failed = flat(
        passed=None, recall_at_k=None, reciprocal_rank=None, overall_score=None, num_tokens=None, sources=None
    )
    assert run_pictures(nothing, [], 0.75) == {}
    assert run_pictures(nothing, [failed.columns()], 0.75) == {}


def test_the_colours_can_be_read_on_white() -> None:
    """Text has a contrast of 4.5:1 or more, and so have the shapes (WCAG 2.2, 1.4.3 and 1.4.11)."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert all(1.05 / (light(colour) + 0.05) >= 4.5 for colour in (BLUE, ORANGE, GREY, "#1f2933", "#52606d"))


# Domains


def test_domains_stand_worst_first_with_their_counts() -> None:
    """By pass rate, then by recall; a bar is as long as its mean; what was not measured has none."""
    made = summed(
        ("good", {"recall_at_k": 1.0, "pass": 1.0}),
        ("bad", {"recall_at_k": 0.5, "pass": 0.0}),
        ("worse", {"recall_at_k": 0.25, "pass": 0.0}),
        ("negatives", {"pass": 1.0}),
        ("failed", {}),
    )
    svg = domains_svg(made)
    written = texts(svg)
    names = [text for text in written if text in made.groups]
    assert names == ["worse", "bad", "good", "negatives"]
    assert [float(shape.get("width", "")) / 150 for shape in drawn(svg, "bar")] == pytest.approx(
        [0.25, 0.0, 0.5, 0.0, 1.0, 1.0, 1.0], abs=1e-3
    )
    assert written.count("not measured") == 1
    assert written[-3:] == [
        "1 domain without anything measured left out",
        "Recall@5: measured on 3 of 5 questions",
        "Pass rate: measured on 4 of 5 questions",
    ]


def test_at_most_25_domains_are_drawn() -> None:
    """The worst are; how many are left out is written."""
    made = summed(*((f"domain {place}", {"recall_at_k": place / 100, "pass": 1.0}) for place in range(60)))
    written = texts(domains_svg(made))
    assert [text for text in written if text.startswith("domain ")] == [f"domain {place}" for place in range(25)]
    assert "35 of 60 domains, which did better, are left out" in written


def test_a_run_that_is_only_judged_shows_the_judge_by_domain() -> None:
    """Where there is no recall."""
    assert "Judge score" in texts(domains_svg(summed(("d", {"overall_score": 0.5}))))


def test_difficulties_are_no_domains() -> None:
    """Only domains are ordered."""
    groups = {"a": {"pass_rate": (0.5, 2)}, "b": {}, "easy": {"pass_rate": (0.1, 1)}, "c": {"pass_rate": (0.5, 9)}}
    assert [name for name, _ in worst_domains(groups)] == ["c", "a", "b"]


@pytest.mark.parametrize(
    "name",
    [EVIL, "x" * 1_000_000, "<script>alert(1)</script>", "\x00\x07\ud800\udfff\ufffe&\"'", "]]>-->", "東京都" * 99],
    ids=["evil", "1 MB", "script", "controls", "ends", "wide"],
)
def test_a_hostile_name_is_text(name: str) -> None:
    """Of a domain and of the golden set: well-formed XML of the same elements, small, without marks that reorder."""
    groups = {name: {"recall_at_k": (0.5, 4), "pass_rate": (0.5, 4)}}
    made = result(
        groups=groups,
        metrics={"recall_at_k": 0.5, "pass_rate": 0.5},
        counts=dict.fromkeys(("recall_at_k", "pass_rate"), 4),
    )
    plainly = domains_svg(replace(made, groups={"d": groups[name]}))
    signature = made.signature.model_construct(**{**made.signature.model_dump(), "golden": name})
    svg = domains_svg(replace(made, signature=signature))
    assert [each.tag for each in ET.fromstring(svg.encode()).iter()] == [
        each.tag for each in ET.fromstring(plainly).iter()
    ]
    assert len(svg) < len(plainly) + 1000
    assert all(letter.isprintable() or letter == "\n" for letter in svg)
    assert not any(each.tag.endswith(("script", "a", "image", "foreignObject")) for each in ET.fromstring(svg).iter())


def test_wide_letters_take_two_columns() -> None:
    """A name fits its place, in any script."""
    assert fitted("short", 24) == "short"
    assert fitted("東" * 12, 24) == "東" * 12
    assert fitted("東" * 13, 24) == "東" * 11 + "…"
    assert len(fitted("e\u0301" * 12, 24)) == 24


# Ranks


def test_ranks_are_counted_without_repeats() -> None:
    """As the scores count them: a repeat keeps its first rank, a nameless source has its own, titles are folded."""
    unscored = partial(flat, reciprocal_rank=None)
    assert first_rank(unscored(sources=sources("b", "b", "a"))) == 2
    assert first_rank(unscored(sources=sources(None, None, "a"))) == 3
    assert first_rank(unscored(sources=sources("b"))) is None
    titles = [{"chunk_id": None, "title": title} for title in (None, "gone_home")]
    assert first_rank(unscored(by_title=True, expected=["Gone Home"], sources=titles)) == 2


def test_the_rank_of_a_single_trial_is_read_off_its_score() -> None:
    """Of several trials the score is a mean, and one of a hostile file may be none."""
    back = sources("b", "c", "a")
    assert first_rank(flat(sources=back, reciprocal_rank=1 / 3)) == 3
    assert first_rank(flat(sources=back, reciprocal_rank=0.5, trials=2)) == 3
    assert first_rank(flat(sources=back, reciprocal_rank=5e-324)) == 3


def test_each_rank_is_counted_once() -> None:
    """Within k by rank, beyond k, not returned; what retrieval did not measure is only counted."""
    rows = [
        flat(sources=sources("a")),
        flat(sources=sources("b", "a"), reciprocal_rank=0.5),
        flat(sources=sources("b", "c", "a"), reciprocal_rank=0.0),
        flat(sources=[], reciprocal_rank=0.0),
        flat(sources=sources("b"), reciprocal_rank=0.0),
        flat(expected=[], reciprocal_rank=None),
        flat(sources=None, reciprocal_rank=None),
    ]
    svg = filled(Ranks(2), rows)
    written = texts(svg)
    shown = {label: written[written.index(label) + 1] for label in ("1", "2", "beyond k", "not returned")}
    assert shown == {"1": "1 (20.0 %)", "2": "1 (20.0 %)", "beyond k": "1 (20.0 %)", "not returned": "2 (40.0 %)"}
    assert "Rank of the first expected source, 5 questions, k = 2" in written
    assert written[-1] == "not in the picture: 2 of 7 questions (retrieval was not measured)"
    assert len(drawn(svg, "miss")) == 2
    assert not filled(Ranks(2), rows[5:])


def test_ranks_of_trials_say_whose_they_are() -> None:
    """A row of several trials holds the sources of one."""
    assert any("several trials" in text for text in texts(filled(Ranks(5), [flat(trials=3)])))


@pytest.mark.parametrize("k", [1, 2, 5, 20, 21, 50, 100, 999, 1000])
def test_bins_hold_every_rank_up_to_k(k: int) -> None:
    """Each rank lies in one bar, and there are few bars also at k = 1,000; a rank on a bar's end is in it."""
    ends = rank_ends(k)
    assert ends[-1] == k
    assert all(low < high for low, high in pairwise(ends))
    assert len(ends) <= 20
    places = [f"b{place}" for place in range(k)]
    for end in {1, ends[len(ends) // 2], k}:
        row = flat(sources=sources(*places[: end - 1], "a"), reciprocal_rank=1 / end)
        written = texts(filled(Ranks(k), [row]))
        label = next(text for text in written if text.split(" to ")[-1] == str(end))
        assert written[written.index(label) + 1] == "1 (100.0 %)"


# Judge scores


def test_scores_are_counted_in_ten_bins() -> None:
    """A score on an edge is in the upper bin, 1 in the last; below and above the threshold are counted exactly."""
    scores = [0, 0.1, 0.29, 0.3, 0.7, 0.74, 0.75, 0.79, 0.8, 1, 1]
    rows = [flat(place, overall_score=score) for place, score in enumerate(scores)] + [flat(overall_score=None)]
    svg = filled(JudgeScores(JUDGED, 0.75, panel=True), rows)
    heights = [round(float(shape.get("height", "")) / 190 * 4) for shape in drawn(svg, "bar")]
    assert heights == [1, 1, 1, 1, 0, 0, 0, 4, 1, 2]
    written = texts(svg)
    assert "5 at 0.75 or above, 6 below" in written
    assert "not in the picture: 1 of 12 questions (no score of a judge)" in written
    assert written[0] == "Judge score, mean of the panel, 11 questions"
    assert not filled(JudgeScores(JUDGED, 0.75, panel=False), [flat(overall_score=None)])
    assert not filled(JudgeScores(None, 0.75, panel=False), [flat()])


@pytest.mark.parametrize(("threshold", "anchor"), [(0.0, "start"), (0.5, "start"), (1.0, "end")])
def test_the_threshold_is_marked(threshold: float, anchor: str) -> None:
    """A dashed line at its place on the axis, its name inside the picture."""
    svg = filled(JudgeScores(JUDGED, threshold, panel=False), [flat()])
    (mark,) = drawn(svg, "limit")
    assert float(mark.get("x1", "")) == 40 + 560 * threshold
    named = next(t for t in ET.fromstring(svg).iter(f"{SVG}text") if (t.text or "").startswith("passes from"))
    assert named.get("text-anchor") == anchor


# Tokens


def test_each_outcome_has_a_shape_of_its_own() -> None:
    """A circle, a triangle, an empty square: colour alone says nothing to some. Each stands once more in the legend."""
    rows = [flat(passed=True), flat(passed=False), flat(passed=False), flat(passed=None)]
    left = [flat(num_tokens=None), flat(recall_at_k=None), flat(num_tokens=0.0)]
    svg = filled(TokenPoints(RECALL, 5), [*rows, *left])
    shapes = {kind: [each.tag.removeprefix(SVG) for each in drawn(svg, kind)] for kind in ("passed", "failed", "open")}
    assert shapes == {"passed": ["circle"] * 2, "failed": ["path"] * 3, "open": ["rect"] * 2}
    written = texts(svg)
    assert {"passed: 1", "did not pass: 2", "neither: 1"} <= set(written)
    assert written[-1] == "all of them drawn; not in the picture: 2 of 7 without tokens or score, 1 with 0 tokens"
    assert not filled(TokenPoints(RECALL, 5), left)
    assert not filled(TokenPoints(None, 5), rows)


def test_points_stand_where_the_axes_say() -> None:
    """Ten times the tokens is the same step anywhere; the score is linear, of the reasoning rubric over 100."""
    rows = [flat(num_tokens=tokens, reasoning_score=50.0) for tokens in (10.0, 100.0, 1000.0)]
    points = drawn(filled(TokenPoints(REASONED, 5), rows), "passed")[1:]
    steps = [float(right.get("cx", "")) - float(left.get("cx", "")) for left, right in pairwise(points)]
    assert steps[0] == pytest.approx(steps[1], abs=0.2)
    assert steps[0] > 100
    assert {point.get("cy") for point in points} == {f"{350 - 260 * 0.5:.1f}"}


def test_of_many_points_a_sample_is_drawn_and_it_says_so() -> None:
    """100,000 rows: 2,000 points, the same ones each time, from all over the run; the counts are of all."""

    def rows() -> Iterator[StoredRow]:
        base = flat()
        for place in range(100_000):
            yield replace(base, passed=place % 4 != 0, scores={**base.scores, "num_tokens": place + 1.0})

    picture = TokenPoints(JUDGED, 5)
    svg = filled(picture, rows())
    assert svg == filled(TokenPoints(JUDGED, 5), rows())
    assert len(drawn(svg, "passed")) + len(drawn(svg, "failed")) == DRAWN + 2
    assert {"passed: 75,000", "did not pass: 25,000"} <= set(texts(svg))
    assert any("2,000 of them drawn, chosen at random (seed 7)" in text for text in texts(svg))
    sample = [tokens for tokens, _, _ in picture._sample]
    assert sum(sample) / DRAWN == pytest.approx(50_000, rel=0.05)


@pytest.mark.parametrize(
    "ends", [(1, 1), (5, 5), (7, 7.5), (1, 9), (100, 100_000), (3, 2**63), (2**62, 2**63), (999, 1000)]
)
def test_the_axis_of_tokens_holds_them_all(ends: tuple[float, float]) -> None:
    """Whatever the range: round ends around it, two to seven ticks within."""
    low, high = log_range(*ends)
    assert low <= ends[0] <= ends[1] < high
    ticks = log_ticks(*ends)
    assert 2 <= len(ticks) <= TICKS
    assert all(low <= tick <= high for tick in ticks)
    rows = [flat(num_tokens=float(end)) for end in ends]
    points = drawn(filled(TokenPoints(JUDGED, 5), rows), "passed")[1:]
    assert all(70 <= float(point.get("cx", "")) <= 610 for point in points)


# Reasoning


def test_each_dimension_has_a_bar_as_long_as_its_mean() -> None:
    """From 0 to 10 over 300 pixels, with the mean and its count beside it."""
    means = {name: place + 0.5 for place, name in enumerate(DIMENSIONS)}
    svg = dimensions_svg({**means, "pass_rate": 1.0}, dict.fromkeys(means, 30))
    assert [float(bar.get("width", "")) for bar in drawn(svg, "bar")] == [30 * mean for mean in means.values()]
    assert texts(svg).count("n 30") == len(DIMENSIONS)
    assert {f"{mean:.2f}" for mean in means.values()} <= set(texts(svg))


def test_a_dimension_nobody_measured_has_no_bar() -> None:
    """What was not measured is no bar of length 0."""
    assert 'class="bar"' not in dimensions_svg({"pass_rate": 1.0}, {})


def test_each_response_that_claims_something_is_counted_once() -> None:
    """By the band it claimed and the band it earned; one that claims nothing is only counted."""
    bands = [(4, 1), (4, 1), (1, 4), (2, 2), (None, 3)]
    written = texts(
        filled(Calibration(), [flat(claimed_band=claimed, earned_band=earned) for claimed, earned in bands])
    )
    assert "Confidence claimed and earned, 4 responses" in written
    assert sorted(text for text in written if text.isdigit()) == ["1", "1", "2"]
    assert all(written.count(band) == 2 for band in BANDS[1:])
    assert written[-1] == "not in the picture: 1 of 5 claim nothing"


def test_marked_is_where_more_is_claimed_than_earned() -> None:
    """Ten of the twenty fields lie above the diagonal."""
    svg = Calibration().svg()
    assert (len(drawn(svg, "bad")), len(drawn(svg, "good"))) == (10, 10)
