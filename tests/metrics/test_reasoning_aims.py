from __future__ import annotations

import io
import json
from collections.abc import Mapping

import pytest
from rich.console import Console

from evaltrack import compare_runs, report_html, run_eval
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.criteria import measured_aims
from evaltrack.report.comparison_words import note_words
from evaltrack.report.run_text import print_run, run_json, run_note
from tests.judging import SHOWCASE, recordings


def evaluated(uri: str, kind: str) -> RunResult:
    return run_eval(SHOWCASE, **recordings(kind), rubric="reasoning", tracking_uri=uri, traces="off")


@pytest.fixture(scope="module")
def strong_and_naive(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, RunResult, RunResult]:
    uri = f"sqlite:///{tmp_path_factory.mktemp('aims') / 'mlflow.db'}"
    return uri, evaluated(uri, "strong"), evaluated(uri, "naive")


@pytest.mark.parametrize(
    ("metrics", "reached"),
    [
        ({"hypotheses": 3.5, "shifts": 2.8, "coupling_violation_rate": 0.099}, [True, True, True]),
        ({"hypotheses": 3.49, "shifts": 2.79, "coupling_violation_rate": 0.1}, [False, False, False]),
        ({"shifts": 3}, [True]),
        ({}, []),
    ],
)
def test_an_aim_is_reached_from_its_value_on_and_violations_stay_below(
    metrics: Mapping[str, float], reached: list[bool]
) -> None:
    assert [each.reached for each in measured_aims(metrics)] == reached


def test_a_run_alone_shows_its_aims_everywhere(strong_and_naive: tuple[str, RunResult, RunResult]) -> None:
    uri, run, _ = strong_and_naive
    mean = run.metrics["hypotheses"]
    change = f"{100 * (mean / 1.2 - 1):+.0f} %"
    screen = Console(file=io.StringIO(), width=160)
    print_run(run, screen)
    cells = ["Hypotheses", f"{mean:.3f}", "3.5 reached", "1.2", change, "+192 %"]
    assert isinstance(screen.file, io.StringIO)
    assert " ".join(cells) in [" ".join(line.split()) for line in screen.file.getvalue().splitlines()]
    assert f"| {' | '.join(cells)} |" in run_note(run)
    page = report_html(run.run_id, tracking_uri=uri)
    row = page.partition(f'<th scope="row">{cells[0]}</th>')[2].partition("</tr>")[0]
    assert row == "".join(f'<td class="num">{cell}</td>' for cell in cells[1:])
    (saved, *_) = json.loads("".join(run_json(run)))["aims"]
    assert (saved["metric"], saved["measured"], saved["aim"], saved["published"]) == ("hypotheses", mean, 3.5, 1.2)
    assert saved["improvement"] == pytest.approx(mean / 1.2 - 1)
    assert saved["aim_improvement"] == pytest.approx(3.5 / 1.2 - 1)


def test_a_comparison_shows_both_baselines(strong_and_naive: tuple[str, RunResult, RunResult]) -> None:
    uri, strong, naive = strong_and_naive
    compared = compare_runs(strong.run_id, naive.run_id, tracking_uri=uri)
    aims = {aim.metric: aim for aim in compared.aims}
    measured = naive.metrics["hypotheses"]
    assert aims["hypotheses"].over_baseline == pytest.approx(strong.metrics["hypotheses"] / measured - 1)
    assert aims["hypotheses"].over_published == pytest.approx(strong.metrics["hypotheses"] / 1.2 - 1)
    said = next(line for line in note_words(compared) if line.startswith("Hypotheses"))
    assert "aim 3.5 reached" in said
    assert "against the published naive baseline of 1.2: " in said
    assert said.endswith("the aim +192 %")
