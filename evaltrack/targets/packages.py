"""The packages installed where a target runs, by the names of their folders: nothing is imported or started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

SUFFIX = ".dist-info"
MOST_PACKAGES = 5000


@cache
def packages_here() -> Mapping[str, str]:
    """Name and version of each package that this interpreter can import."""
    return packages_in(map(Path, sys.path))


def packages_of_program(program: str) -> Mapping[str, str]:
    """Those of the virtual environment whose `bin` (on Windows `Scripts`) holds a program; none where it is in none."""
    found = shutil.which(program)
    if found is None:
        return {}
    environment = Path(os.path.abspath(found)).parent.parent  # noqa: PTH100 - a link leads out of the environment
    if not (environment / "pyvenv.cfg").is_file():
        return {}
    return packages_in([*sorted(environment.glob("lib/python3*/site-packages")), environment / "Lib/site-packages"])


def packages_in(folders: Iterable[Path]) -> dict[str, str]:
    """Name and version of each package in folders of packages, by name; the first folder that has one decides.

    A folder that cannot be read holds none.
    """
    packages: dict[str, str] = {}
    for folder in folders:
        try:
            names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
        except OSError:
            continue
        for name in names[:MOST_PACKAGES]:
            package, dash, release = name.removesuffix(SUFFIX).rpartition("-")
            if dash and package and release:
                packages.setdefault(package.replace("_", "-").lower(), release)
    return dict(sorted(packages.items()))
