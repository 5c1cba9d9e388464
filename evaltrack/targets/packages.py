"""What runs with a target: installed packages, by the names of their folders, and files of the project."""

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


OF_PYTHON = ("stdlib", "platstdlib", "scripts")
INSTALLED = frozenset({"site-packages", "dist-packages"})
"""Folders of installed packages, which may stand in that of the project."""


def imported_files(module: str) -> dict[str, Path]:
    """The files of the project that this process has imported, by their paths: those below the working directory from
    there on.

    The first is that of the module, whatever its folder. The others are below the working directory or the folder in
    which the module was found, and belong neither to Python nor to evaltrack nor to an installed package.
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
    """The file of a module that is imported; empty where it has none. No attribute is looked up, which may import."""
    file = getattr(sys.modules.get(module), "__dict__", {}).get("__file__")
    return file if isinstance(file, str) else ""
