#!/usr/bin/env python3
"""Writes the pages of the reference that follow from the code: commands, settings, metrics, Python API, exit codes.

Run it after a change of an option, a setting, a metric, a promised name or an error; a test says when it is due.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from scripts.references.commands import commands_page  # noqa: E402 - found through the path above
from scripts.references.python_api import python_page  # noqa: E402
from scripts.references.settings import settings_page  # noqa: E402
from scripts.references.stub import stub  # noqa: E402
from scripts.references.tables import exit_codes_page, metrics_page  # noqa: E402

PAGES = {
    "evaltrack/options.pyi": stub,
    "docs/settings.md": settings_page,
    "docs/reference/commands.md": commands_page,
    "docs/reference/metrics.md": metrics_page,
    "docs/reference/python.md": python_page,
    "docs/reference/exit-codes.md": exit_codes_page,
}
"""Each page with the function that returns its text."""

if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    for name, page in PAGES.items():
        (ROOT / name).write_text(page(), encoding="utf-8")
        print(name)
