from __future__ import annotations

import json
import re
from dataclasses import replace
from html import escape, unescape
from typing import Any
from urllib.parse import quote
from urllib.request import urlopen

import mlflow
import pytest

from evaltrack import run_eval, run_sweep
from evaltrack.api.run_several import run_sets
from evaltrack.report.run_text import run_note
from evaltrack.tracking.baselines import get_baseline, set_baseline
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import trace_id_of
from tests.files import put

from .conftest import Handbook, Open, PagesServer, own_places
from .pages import SCROLLING, apart, audit, audits, chosen, framed, listed, sideways, until, watch, widths

PAGES = ["golden", "overview", "question", "comparison", "error"]
"""The first has all that the pages have: tables, forms, marks and a plot."""
HOSTILE = "<img src=x onerror=alert(1)>"
DEEP = "[" * 3900 + "]" * 3900


def address(site: Handbook, name: str) -> str:
    of = f"{site.experiment_id}/handbook"
    places = {
        "golden": f"golden/{of}",
        "question": f"question/{of}/5",
        "comparison": f"page/{of}/{site.candidate}/comparison.html",
        "report": f"page/{of}/{site.candidate}/report.html",
        "error": "golden/99/gone",
    }
    return f"{site.uri}/evaltrack/#/{places.get(name, '')}"


def opened(page: Any, where: str) -> Any:
    page.goto(where)
    page.locator("main:not([aria-busy])").wait_for(state="attached")
    until(page, "!document.body.innerText.includes('Reading')")
    return page


@pytest.mark.parametrize(("name", "look"), audits(*PAGES))
def test_everybody_can_read_every_page(site: Handbook, tab: Open, name: str, look: str) -> None:
    page = tab(look)
    seen = watch(page)
    opened(page, address(site, name))
    assert all(url.startswith((site.uri, "data:")) for url in seen.requests)
    assert seen.problems == []  # axe-core itself cannot speak to the frame of a report
    assert audit(page) == []
    assert sideways(page) <= 0


def test_from_the_first_page_to_a_question(site: Handbook, tab: Open) -> None:
    page = opened(tab(), address(site, "overview"))
    row = page.get_by_role("row", name="handbook")
    told = json.loads(mlflow.MlflowClient(site.uri).get_run(site.candidate).data.tags["evaltrack.compare.result"])
    assert "regression" in row.inner_text()
    assert f"{told['broke']} · {told['fixed']}" in row.inner_text()
    assert told["cause"] in row.inner_text()
    row.get_by_role("link", name="handbook", exact=True).click()
    page.get_by_text("Broke in the newest run").wait_for()
    page.get_by_role("link", name="5", exact=True).first.click()
    page.get_by_role("heading", name="money back").wait_for()
    assert page.locator("article", has_text="Before").locator(".badge").inner_text() == "pass"
    assert page.locator("article", has_text="Now").locator(".badge").inner_text() == "fail"
    page.get_by_label("Before").select_option(index=0)
    until(page, "document.querySelectorAll('article .badge.bad').length === 2")
    page.go_back()
    page.get_by_role("link", name="Comparison").first.click()
    assert framed(page).locator("h1").inner_text().startswith("Regression")


def test_a_baseline_is_set_after_a_question_and_told(site: Handbook, history: str, tab: Open) -> None:
    page = opened(tab("phone"), address(site, "golden"))
    assert page.get_by_role("row", name="summer").get_by_role("button").count() == 0  # it has errors
    experiment = mlflow.MlflowClient(history).get_experiment_by_name("history").experiment_id
    was = apart(lambda: get_baseline(connect(history), experiment, "went"))
    opened(page, f"{history}/evaltrack/#/golden/{experiment}/went")
    line = page.get_by_role("row", name="run 4").first
    line.get_by_role("button", name="Set as baseline").click()
    page.get_by_role("dialog").get_by_text(f"replaces run {was.run_id[:8]}").wait_for()
    page.get_by_role("button", name="Cancel").click()
    assert apart(lambda: get_baseline(connect(history), experiment, "went")) == was
    line.get_by_role("button", name="Set as baseline").click()
    page.get_by_label("Reason").fill("mended <b>and</b> checked")
    assert audit(page) == []
    page.get_by_role("dialog").get_by_role("button", name="Set as baseline").click()
    page.get_by_role("status").get_by_text("run 4 is now the baseline of went").wait_for()
    page.get_by_text("mended <b>and</b> checked").first.wait_for()
    made = apart(lambda: get_baseline(connect(history), experiment, "went"))
    assert (made.run_id != was.run_id, made.reason, made.by) == (True, "mended <b>and</b> checked", "evaltrack ui")


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory, pages_server: PagesServer) -> str:
    """Five runs of a golden set in which questions break, stay broken and flicker; another k, a sweep, and two sets."""
    folder = tmp_path_factory.mktemp("history")
    for path in (folder / "went.jsonl", folder / "other.jsonl"):
        put(path, [{"id": name, "question": name, "expected_chunks": ["a"]} for name in WENT])

    def make(uri: str) -> None:
        options: dict[str, Any] = {"judge": "none", "tracking_uri": uri, "traces": "off", "experiment": "history"}
        golden = folder / "went.jsonl"
        for at in range(5):
            AT[0] = at
            made = run_eval(golden, target=found, run_name=f"run {at}", param={"version": "ab"[at == 2]}, **options)
            if at == 0:
                set_baseline(connect(uri), find_evaluation(connect(uri), made.run_id))
        AT[0] = 0
        run_eval(golden, target=found, run_name=HOSTILE, k=9, **options)
        AT[0] = 5
        run_sets([golden, folder / "other.jsonl"], target=found, run_name="nightly", **options)
        settings = {"judge": "none", "experiment": "history"}
        run_sweep({"golden": str(golden), "targets": [found], "k": [4, 5], "settings": settings}, tracking_uri=uri)
        client = mlflow.MlflowClient(uri)
        client.create_run(made.experiment_id, tags={"evaltrack.golden": "went"})
        spoilt = client.create_experiment("spoilt")
        for name in ("golden_set", "baseline"):
            client.set_experiment_tag(spoilt, f"evaltrack.{name}.spoilt", "spoilt" if name == "golden_set" else DEEP)
        for start, text in (
            (9 * 10**18, DEEP),
            (0, "[1]"),
            (1, "null"),
            (2, '{"baseline": {"a": 1}, "cause": [], "broke": "x"}'),
        ):
            tags = {f"evaltrack.{name}": text for name in ("signature", "compare.result", "compare.verdict")}
            run = client.create_run(spoilt, start_time=start, tags={**tags, "evaltrack.golden": "spoilt"})
            client.log_metric(run.info.run_id, "pass_rate", float("nan"))
            client.set_terminated(run.info.run_id, end_time=start // 10**7)

    with own_places(folder), pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALTRACK_CALLER_FOLDER", str(folder))  # in no repository
        apart(lambda: make(pages_server.store))
    return pages_server.address


WENT = {
    "steady": "111111",
    "broke": "111110",
    "fails": "110000",
    "flaky": "101111",
    "never": "000000",
    HOSTILE: "111110",
}
"""The runs in which each question passes."""
AT = [0]


def found(question: str) -> list[str]:
    return ["a" if WENT[question][AT[0]] == "1" else "b"]


def test_questions_are_grouped_by_how_they_went(history: str, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    opened(page, f"{history}/evaltrack/")
    page.get_by_role("link", name="went").click()
    page.locator("[data-id] .dim").first.wait_for()
    section = page.locator("section", has_text="Questions over the runs")
    lines = {
        each.locator("summary").text_content().split(" (")[0]: each.locator("tbody tr").all_text_contents()
        for each in section.locator("details:has(table)").all()
    }
    assert lines == {
        "Broke in the newest run": ["broke broke·····✕", f"{HOSTILE} {HOSTILE}·····✕"],
        "Still fail": ["fails fails··✕✕✕✕"],
        "Flaky: changed without a change of commit, corpus or settings": ["flaky flaky·✕····"],
        "Fail in every run": ["never never✕✕✕✕✕✕"],
    }
    assert section.get_by_text("left out").inner_text() == (
        "4 runs left out: 1 not finished; 2 part of a sweep; 1 another k"
    )
    assert section.get_by_text("1 question passed in the newest run").is_visible()
    section.get_by_text("left out").click()
    section.get_by_role("link", name="history up to it").click()
    page.get_by_text("The history up to").wait_for()
    page.get_by_text("1 run, oldest first").wait_for()
    page.goto(f"{page.url}-gone")
    page.get_by_text("This run is not among the newest 100 runs of the golden set.").wait_for()
    assert seen.problems == []


def test_a_sweep_and_several_sets_are_a_line_that_unfolds(history: str, tab: Open) -> None:
    page = opened(tab(), f"{history}/evaltrack/")
    assert [each.split()[0] for each in page.locator("details > summary").all_inner_texts()] == ["sweep", "golden"]
    page.locator("summary", has_text="nightly").click()
    page.get_by_role("region", name="Runs of nightly").get_by_text("other", exact=True).wait_for()
    page.locator("summary", has_text="sweep").click()
    page.get_by_role("link", name="leaderboard").click()
    page.frame_locator("iframe").get_by_text("configuration").first.wait_for()
    assert not page.get_by_role("button", name="Dark colours").is_visible()  # it cannot reach into the frame
    page.go_back()
    page.get_by_role("link", name="went").first.click()
    button = page.get_by_role("button", name="2 runs of a sweep")
    button.wait_for()
    rows = page.get_by_role("region", name="Runs", exact=True).locator("tbody tr:visible")
    before = rows.count()
    button.click()
    assert rows.count() == before + 2


def test_an_empty_store_says_what_to_do(tab: Open, pages_server: PagesServer) -> None:
    page = tab()
    nothing = json.dumps({"max_results": 1000, "filter": "name = 'nothing'"})
    page.route("**/experiments/search", lambda route: route.continue_(post_data=nothing))
    opened(page, f"{pages_server.address}/evaltrack/").get_by_text("evaltrack run GOLDEN").wait_for()
    assert audit(page) == []


def test_foreign_text_is_text(history: str, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    experiment = mlflow.MlflowClient(history).get_experiment_by_name("history").experiment_id
    opened(page, f"{history}/evaltrack/#/golden/{experiment}/went")
    page.get_by_role("link", name=HOSTILE).first.wait_for()
    opened(page, f"{history}/evaltrack/#/question/{experiment}/went/{quote(HOSTILE, safe='')}")
    page.get_by_role("heading", name=HOSTILE).wait_for()
    assert page.locator("img").count() == 0
    assert seen.problems == []


def test_what_a_stranger_wrote_spoils_its_own_experiment_alone(history: str, tab: Open) -> None:
    page = opened(tab(), f"{history}/evaltrack/")
    page.get_by_role("link", name="went").wait_for()
    page.get_by_role("link", name="spoilt").click()
    page.get_by_role("heading", name="spoilt").wait_for()
    page.get_by_text("No finished run has outcomes to show.").wait_for()


@pytest.mark.parametrize("view", ["a sandboxed frame", pytest.param("MLflow", marks=pytest.mark.long)])
def test_a_report_works_in_the_frame_of_the_artifact_view(site: Handbook, visit: Open, view: str) -> None:
    """Scripts run there, but no link opens a window."""
    page = visit()
    if view == "MLflow":
        page.goto(site.link(site.candidate, "/artifacts/comparison.html"))
    else:
        file = urlopen(f"{site.uri}/get-artifact?path=comparison.html&run_uuid={site.candidate}").read().decode()
        page.set_content(f'<iframe sandbox="allow-scripts" width="600" height="800" srcdoc="{escape(file)}"></iframe>')
    frame = framed(page)
    seen = watch(page)
    assert page.locator("iframe").get_attribute("sandbox") == "allow-scripts"
    frame.locator(".row").first.click()  # the frame is as narrow as a phone
    frame.locator("ol.ranked a").first.click()
    told = frame.get_by_label("Address of the link")
    assert told.input_value().startswith("https://docs.example/")
    assert frame.evaluate("document.activeElement.getAttribute('aria-label')") == "Address of the link"
    frame.get_by_role("link", name="Trace in MLflow").first.click()
    traces = [trace_id_of(run_id, chosen(frame)) for run_id in (site.baseline, site.candidate)]
    assert re.findall(r"selectedEvaluationId=(tr-[0-9a-f]+)", told.input_value())[0] in traces
    assert seen.problems == []
    assert len(page.context.pages) == 1

    before = chosen(frame)
    frame.locator("#to-list").click()
    frame.locator(".row").nth(2).click()
    assert chosen(frame) == listed(frame)[2] != before
    frame.locator("#detail").get_by_role("link", name=f"#{chosen(frame)}").click()
    frame.locator("#to-list").click()
    frame.locator("#filters summary").click()
    frame.locator("#f-domain").select_option("luggage")
    assert frame.locator("#found").inner_text().endswith(" of 24 questions")
    frame.locator(".head nav a", has_text="Runs").click()
    assert frame.locator("#runs").is_visible()


def test_a_description_shows_its_links_and_no_escapes(site: Handbook, visit: Open) -> None:
    made = apart(lambda: site.travel(3, experiment="note", traces="off"))
    told = replace(made, notes=(f"{HOSTILE} [x](javascript:alert(1)) **c** www.a.b https://a.b x@a.b 10:30: a",))
    connect(site.uri).client.set_tag(made.run_id, "mlflow.note.content", run_note(told))
    page = visit()
    page.goto(made.link or "")
    page.get_by_text("questions passed, k = 5").first.wait_for()
    shown = page.content()
    told_links = re.findall(r'<a target="_blank" href="(#[^"]*)">', shown)
    address = f"#/experiments/{made.experiment_id}/runs/{made.run_id}/artifacts/report.html"
    assert address in told_links
    assert unescape(shown).replace("\u200b", "").count("www.a.b https://a.b x@a.b 10:30: a") == 1
    assert "a.b</a>" not in shown
    description = shown[shown.index("questions passed, k = 5") :]
    assert "\\" not in description[: description.index("</table>")]


@pytest.mark.long
def test_any_two_runs_are_paired_question_by_question(site: Handbook, visit: Open) -> None:
    """*Evaluation runs > Compare* pairs the questions of k=3 and k=5; the table opens in the artifact view."""
    first, second = (apart(lambda k=k: site.travel(26, k=k, experiment="travel")) for k in (3, 5))  # type: ignore[misc]
    page = visit()
    page.set_viewport_size({"width": 2400, "height": 1400})
    page.goto(connect(site.uri).compare_link(first.experiment_id, second.run_id, first.run_id))
    page.get_by_text("What does it cost to check in a surfboard?").first.wait_for()
    compared = page.content()
    assert all(re.search(rf"travel bm25:[^ ]*corpus/travel k={k}", compared) for k in (3, 5))
    assert "26 of 26" in compared
    assert "recall_at_k" in compared

    page.goto(f"{second.link}/artifacts/per_question.json")
    page.get_by_text("View as table").first.wait_for()
    page.locator(".table-header-text", has_text="retrieved").first.wait_for(state="attached")


def test_no_table_of_the_pages_scrolls_sideways(site: Handbook, tab: Open) -> None:
    page = tab()
    for name in PAGES:
        opened(page, address(site, name))
        for width in widths(page):
            assert page.evaluate(SCROLLING) == [], (name, width)
            assert sideways(page) <= 0, (name, width)
