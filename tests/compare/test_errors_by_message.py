"""Messages of errors that count as one."""

from __future__ import annotations

import pandas as pd
import pytest

from evaltrack.compare.pairing import error_counts, message_kind


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("refused at port 4711", "refused at port 80", True),
        ("no answer within 5 s", "no answer within 12 s", True),
        ("HTTP 503", "HTTP 500", False),
        ("status 429: slow down", "status 401: slow down", False),
        ("HTTP 503 after 2 s", "HTTP 503 after 30 s", True),
    ],
)
def test_numbers_make_no_other_error_but_the_status_of_a_response(one: str, other: str, alike: bool) -> None:
    assert (message_kind(one) == message_kind(other)) is alike
    frame = pd.DataFrame({"error_b": [one, other, one], "error_c": [None] * 3})
    found = [(each.side, each.message, each.count) for each in error_counts(frame)]
    assert found == [("baseline", one, 3)] if alike else [("baseline", one, 2), ("baseline", other, 1)]
