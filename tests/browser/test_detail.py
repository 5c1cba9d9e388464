from __future__ import annotations

import csv
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from evaltrack.report.html.comparison_page import comparison_html
from tests.compared import patched
from tests.comparisons import FLIP, comparison, flat

from .conftest import Open
from .pages import LOOKS, audit, sideways, until, watch

WANTED = "Refunds are paid in full within 30 days. Write to the service desk. Keep the ticket number."
BEFORE = """**Refunds** are paid in full within 30 days. Write to the service desk.

- Keep the `ticket number`.
- See [the fares](https://docs.example/fares) or https://docs.example/desk.

| way | days |
| --- | --- |
| card | 30 |"""
AFTER = """**Refunds** are paid in part within 14 days. Penguins cannot fly.

1. Keep the `ticket number`.

```
<script>window.pwned = 1</script>
```
<img src=x onerror="window.pwned=1"> [x](javascript:window.pwned=1) ![a picture](https://evil.example/i.png)"""
SAID = 'It says "in part within 14 days", and not "in full, always".'


def judged(answer: str, score: float, passes: int) -> Any:
    """The row of an answer that two judges judged in three trials."""
    verdict = {"judge": "strict", "reasoning": SAID, "overall_score": score, "accuracy": score}
    lenient = {"judge": "lenient", "reasoning": "Fine.", "overall_score": 0.9}
    return patched(
        flat(answer, "fees#refunds", "fees#lead"),
        expected_answer=WANTED,
        verdicts=[verdict, lenient],
        overall_score=score,
        recall_at_k=score,
        trials=3,
        passes=passes,
    )


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    flip = replace(FLIP, before=judged(BEFORE, 0.95, 3), after=judged(AFTER, 0.5, 1))
    panel = [{"judge": f"judge {place}", "reasoning": "Fine.", "overall_score": 0.9} for place in range(14)]
    after = patched(flip.after, verdicts=panel)
    other = replace(
        flip, after=after, id="=1+1", question='=HYPERLINK("http://evil.example"), or "not"?', fate="lower score"
    )
    made = comparison(flips=(flip,), drops=(other,), left_out=())
    path: Path = tmp_path_factory.mktemp("detail") / "page.html"
    path.write_text(comparison_html(made), encoding="utf-8")
    return path.as_uri()


def test_sentences_stand_beside_one_another_and_differences_are_marked(address: str, tab: Open) -> None:
    page = tab()
    page.goto(f"{address}#q-7")
    before, now = page.locator("#detail .cell-before"), page.locator("#detail .cell-now")
    pairs = zip(before.all_text_contents(), now.all_text_contents(), strict=True)
    assert [tuple(each.strip() for each in pair) for pair in pairs][:3] == [
        ("Refunds are paid in full within 30 days.", "Refunds are paid in part within 14 days."),
        ("Write to the service desk.", "Penguins cannot fly."),
        ("• Keep the ticket number.", "1. Keep the ticket number."),
    ]
    assert before.first.locator("del").all_inner_texts() == ["full", "30"]
    assert now.first.locator("ins").all_inner_texts() == ["part", "14"]
    assert now.nth(2).locator("ins").count() == 0, "a number of a list is no word"
    assert before.nth(1).get_attribute("class") == "cell-before alone"
    wanted = page.locator("#detail .wanted .md")
    assert wanted.all_inner_texts() == [f"{each}." for each in WANTED.rstrip(".").split(". ")]
    assert wanted.first.locator(".missing.lost").all_inner_texts() == ["full", "30"]
    assert wanted.nth(1).evaluate("each => each.matches('.all-missing.lost')")
    assert wanted.nth(2).evaluate("each => !each.matches('.all-missing')")


def test_markdown_is_shown_and_nothing_in_it_acts(address: str, tab: Open) -> None:
    page = tab()
    seen = watch(page)
    page.goto(f"{address}#q-7")
    texts = page.locator("#detail .all-texts")
    assert texts.locator("strong").all_inner_texts() == ["Refunds", "Refunds"]
    assert texts.locator("code").all_inner_texts() == ["ticket number", "ticket number"]
    assert texts.locator("table td").all_inner_texts() == ["card", "30"]
    assert texts.locator("pre").inner_text() == "<script>window.pwned = 1</script>"
    links = [each.get_attribute("href") for each in texts.locator("a").all()]
    assert links == ["https://docs.example/fares", "https://docs.example/desk", "https://evil.example/i.png"]
    assert '<img src=x onerror="window.pwned=1"> [x](javascript:window.pwned=1)' in texts.inner_text()
    assert texts.locator("img, script").count() == 0
    assert page.evaluate("window.pwned") is None
    assert len({url.partition("#")[0] for url in seen.requests}) == 1
    assert seen.problems == []


def test_each_judge_stands_with_both_sides(address: str, tab: Open) -> None:
    page = tab()
    page.goto(f"{address}#q-7")
    panel = page.locator("#detail .panel")
    assert panel.locator("h4").all_inner_texts() == ["Trials", "strict", "lenient"]
    assert panel.locator(".trials").all_inner_texts() == ["3 of 3 trials passed", "1 of 3 trials passed"]
    assert panel.locator("b.bar-value").all_inner_texts() == ["0.95", "0.50", "0.90", "0.90"]
    assert panel.locator(".bar-row.low").count() == 1
    assert panel.locator(".quoted").all_inner_texts() == ["in part within 14 days"]
    quoted = page.locator("#detail .cell-now .quoted").all_inner_texts()
    assert " ".join(quoted).split() == ["in", "part", "within", "14", "days"]
    assert page.locator("#detail .scores tr", has_text="Recall@3").locator("td").all_inner_texts() == [
        *("0.950", "0.500", "▼ −0.450")
    ]
    heads = page.locator("#detail .text-head").all_inner_texts()
    assert [each.split() for each in heads] == [
        ["Expected"],
        ["Before", "rank", "1", "judge", "0.95", "pass"],
        ["Now", "rank", "1", "judge", "0.50", "fail"],
    ]
    page.goto(f"{address}#q-%3D1%2B1")
    page.locator("#detail", has_text="Judges (").wait_for()


def test_a_question_can_be_copied(address: str, tab: Open) -> None:
    page = tab(permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"{address}#q-7")
    page.locator("#copy-link").click()
    until(page, "document.getElementById('notice').textContent === 'Link copied'")
    assert page.evaluate("navigator.clipboard.readText()").endswith("page.html#q-7")
    page.locator("#copy-markdown").click()
    until(page, "document.getElementById('notice').textContent === 'Question copied'")
    told = page.evaluate("navigator.clipboard.readText()")
    assert told.startswith("### broke: `Can I get a refund?`\n\n`7` · `travel`")
    assert f"**Now**\n\n````text\n{AFTER}\n````" in told
    assert "- 1 → 1 `fees#refunds` (expected)" in told

    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page.locator("#copy-link").click()
    area = page.get_by_label("Link: copy it from here")
    assert area.input_value().endswith("#q-7")
    area.press("Escape")
    assert area.count() == 0


def test_what_is_filtered_is_saved(address: str, tab: Open) -> None:
    page = tab()
    page.goto(address)
    page.locator("#filters summary").click()
    page.select_option("#f-group", "drop")
    with page.expect_download() as download:
        page.locator("#save-csv").click()
    assert download.value.suggested_filename == "questions.csv"
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    (line,) = csv.DictReader(StringIO(text, newline=""))
    assert (line["id"], line["question"]) == ("'=1+1", '\'=HYPERLINK("http://evil.example"), or "not"?')
    assert line["answer_candidate"].replace("\r\n", "\n") == AFTER
    assert (line["score_baseline"], line["rank_candidate"]) == ("0.95", "1")
    page.select_option("#f-group", "all")
    with page.expect_download() as download:
        page.locator("#save-csv").click()
    saved = list(csv.DictReader(StringIO(Path(download.value.path()).read_text(encoding="utf-8-sig"), newline="")))
    assert [each["change"] for each in saved] == ["broke", "lost", "lower score", "fixed"]
    first = saved[0]
    assert (first["id"], first["from"], first["to"], first["cause"]) == ("7", "pass", "fail", "source_demoted")
    assert first["expected_answer"] == WANTED
    assert first["sources_candidate"].startswith("1. fees#refunds (expected)")
    assert first["judges_baseline"].startswith(f"strict: {SAID}")
    assert saved[1]["answer_baseline"] == ""


def test_light_and_dark_are_chosen_and_remembered(address: str, tab: Open) -> None:
    page = tab()
    colour = "getComputedStyle(document.body).backgroundColor"
    page.goto(address)
    light = page.evaluate(colour)
    button = page.get_by_role("button", name="Dark colours")
    assert button.get_attribute("aria-pressed") == "false"
    button.click()
    dark = page.evaluate(colour)
    assert dark != light
    page.reload()
    assert (page.evaluate(colour), button.get_attribute("aria-pressed")) == (dark, "true")
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    page.emulate_media(media="screen")
    button.click()
    assert page.evaluate(colour) == light
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(colour) == dark, "nothing is remembered that the system says"


@pytest.mark.parametrize("look", LOOKS)
def test_everybody_can_read_a_question(address: str, tab: Open, look: str) -> None:
    page = tab(look)
    page.goto(f"{address}#q-7")
    page.locator("#detail .merged summary").first.click()
    assert audit(page) == []
    assert sideways(page) <= 0
