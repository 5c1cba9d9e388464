"""Where this installation of evaltrack came from, so that a CI installs the same."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any
from urllib.parse import urlsplit

from evaltrack import __version__

DISTRIBUTION = "mlflow-evaltrack"
"""What pip calls it; on PyPI another project is called evaltrack, and has the same module and command."""

SOMEWHERE = f"git+https://github.com/OWNER/evaltrack@v{__version__}"
"""In place of an address that is not known."""


@dataclass(frozen=True)
class Origin:
    """The requirement that pip installs, and GitHub's action of the same version."""

    package: str
    action: str


def origin_of_package(package: str = "") -> Origin:
    """The requirement `package`, else what pip noted down about this installation (PEP 610).

    An installation from a folder or a file says nothing that another machine could use: it gets a placeholder.
    """
    requirement = package or _requirement(_direct_url())
    found = re.search(r"git\+https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?@([\w./-]+)", requirement)
    action = f"{found[1]}/scripts/github@{found[2]}" if found else f"OWNER/evaltrack/scripts/github@v{__version__}"
    return Origin(requirement, action)


def _requirement(direct: dict[str, Any] | None) -> str:
    """The requirement that a `direct_url.json` describes; None is that of an index."""
    if direct is None:
        return f"{DISTRIBUTION}=={__version__}"
    version, url = direct.get("vcs_info"), urlsplit(str(direct.get("url", "")))
    if not isinstance(version, dict) or url.scheme != "https" or not url.hostname:
        return f"{DISTRIBUTION} @ {SOMEWHERE}"
    port = f":{url.port}" if url.port else ""
    return f"{DISTRIBUTION} @ git+https://{url.hostname}{port}{url.path}@{version.get('commit_id')}"


def _direct_url() -> dict[str, Any] | None:
    """What pip noted down where it did not install from an index; a checkout that is not installed is a folder."""
    try:
        text = distribution(DISTRIBUTION).read_text("direct_url.json")
        value = json.loads(text) if text else None
    except (PackageNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else None
