"""The commit that a run says it is of."""

from __future__ import annotations

from evaltrack.tracking.commit import commit_of
from evaltrack.tracking.provenance import GIT_COMMIT

SHA = "0123456789abcdef0123456789abcdef01234567"


def test_a_tag_that_names_no_commit_is_passed_over() -> None:
    """Anybody may write one."""
    assert commit_of({GIT_COMMIT: SHA}) == SHA
    assert commit_of({GIT_COMMIT: "<script>"}) == ""
    assert commit_of({}) == ""
