"""The pictures of a run on reasoning: well-formed, complete, and only text where text is meant."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

from evaltrack.reasoned import DIMENSIONS
from evaltrack.report.pictures import BANDS, calibration_svg, dimensions_svg

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    """What is written in a picture."""
    return ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]


def row(claimed: int | None, earned: int) -> dict[str, Any]:
    """What the table holds of a response's confidence."""
    return {"claimed_band": claimed, "earned_band": earned}


def test_each_dimension_has_a_bar_as_long_as_its_mean() -> None:
    """From 0 to 10 over 300 pixels, with the mean and its count beside it."""
    means = {name: place + 0.5 for place, name in enumerate(DIMENSIONS)}
    svg = dimensions_svg({**means, "pass_rate": 1.0}, dict.fromkeys(means, 30))
    widths = [float(bar.get("width", "")) for bar in ET.fromstring(svg).iter(f"{SVG}rect") if bar.get("class") == "bar"]
    assert widths == [30 * mean for mean in means.values()]
    assert texts(svg).count("n 30") == len(DIMENSIONS)
    assert {f"{mean:.2f}" for mean in means.values()} <= set(texts(svg))


def test_a_dimension_nobody_measured_has_no_bar() -> None:
    """What was not measured is no bar of length 0."""
    assert 'class="bar"' not in dimensions_svg({"pass_rate": 1.0}, {})


def test_each_response_that_claims_something_is_counted_once() -> None:
    """By the band it claimed and the band it earned; a response that claims nothing is not in the picture."""
    rows = [row(4, 1), row(4, 1), row(1, 4), row(2, 2), row(None, 3)]
    written = texts(calibration_svg(rows))
    assert "Confidence claimed and earned, 4 responses" in written
    assert sorted(text for text in written if text.isdigit()) == ["1", "1", "2"]
    assert all(written.count(band) == 2 for band in BANDS[1:])


def test_red_is_where_more_is_claimed_than_earned() -> None:
    """Ten of the twenty fields lie above the diagonal."""
    kinds = [field.get("class") for field in ET.fromstring(calibration_svg([])).iter(f"{SVG}rect")]
    assert (kinds.count("bad"), kinds.count("good")) == (10, 10)
