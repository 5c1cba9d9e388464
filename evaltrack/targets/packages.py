"""Lists the code that a target runs with: the installed packages and the imported files of the project."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

OWN_FOLDER = Path(__file__).parents[1]
SUFFIX = ".dist-info"
MOST_PACKAGES = 5000


@cache
def packages_here() -> Mapping[str, str]:
    """Return name and version of each package that this interpreter can import."""
    return packages_in(map(Path, sys.path))


def packages_of_program(program: str) -> Mapping[str, str]:
    """Return the packages of the virtual environment that holds a program in its `bin` (`Scripts` on Windows).

    Empty if the program is in none.
    """
    found = shutil.which(program)
    if found is None:
        return {}
    environment = Path(os.path.abspath(found)).parent.parent  # noqa: PTH100 - a link leads out of the environment
    if not (environment / "pyvenv.cfg").is_file():
        return {}
    return packages_in([*sorted(environment.glob("lib/python3*/site-packages")), environment / "Lib/site-packages"])


def packages_in(folders: Iterable[Path]) -> dict[str, str]:
    """Return name and version of each package in folders of packages, by name; the first folder with one decides.

    Unreadable folders are skipped.
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


OF_PYTHON = ("stdlib", "platstdlib", "scripts")
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may be inside the project."""


def imported_files(module: str) -> dict[str, Path]:
    """Return the project's files that this process has imported, by path relative to the working directory if below it.

    The first is the file of the module, in any folder. The others are below the working directory or the module's
    import folder, and do not belong to Python, evaltrack or an installed package.
    """
    own = _file_of(module)
    roots = (Path.cwd(), *Path(own).parents[module.count(".") :][:1])
    below = tuple(f"{root}{os.sep}" for root in roots)
    others = tuple(f"{folder}{os.sep}" for folder in (OWN_FOLDER, *map(sysconfig.get_path, OF_PYTHON)))
    imported = (file for file in map(_file_of, list(sys.modules)) if file.startswith(below))
    own_files = [each for each in imported if not each.startswith(others) and INSTALLED.isdisjoint(Path(each).parts)]
    paths = map(Path, (own, *own_files))
    return {path.as_posix().removeprefix(f"{Path.cwd().as_posix()}/"): path for path in paths}


def _file_of(module: str) -> str:
    """Return the file of an imported module; empty if it has none. No attribute is looked up, which could import."""
    file = getattr(sys.modules.get(module), "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""
