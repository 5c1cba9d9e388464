from __future__ import annotations

import ast
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import evaltrack
from evaltrack import errors

from .conftest import REPO

HEAVY = ("mlflow", "openai", "pandas", "scipy", "tiktoken", "pyarrow", "numpy", "rich", "pydantic")


def modules_after(code: str) -> set[str]:
    code = f"import sys\n{code}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    return set(ended.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import evaltrack",
        "from evaltrack.cli import _run\n_run(['--help'])",
        "from evaltrack.cli import _run\n_run(['--version'])",
    ],
)
def test_no_heavy_package_is_imported_before_it_is_needed(code: str) -> None:
    assert modules_after(code).isdisjoint(HEAVY)


def test_help_of_a_command_needs_neither_mlflow_nor_pandas() -> None:
    loaded = modules_after("from evaltrack.cli import _run\n_run(['run', '--help'])")
    assert loaded.isdisjoint({"mlflow", "openai", "pandas", "scipy", "tiktoken", "pyarrow"})


def test_every_promised_name_is_there() -> None:
    names = [name for name in evaltrack.__all__ if name != "__version__"]
    assert names == sorted(names)
    assert all(getattr(evaltrack, name) is not None for name in dir(evaltrack))
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = evaltrack.nonsense  # type: ignore[attr-defined]


def test_imports_go_down_only() -> None:
    linter = Path(sys.executable).parent / "lint-imports"
    ended = subprocess.run([str(linter)], cwd=REPO, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"})
    assert ended.returncode == 0, ended.stdout


def test_definitions_stand_where_they_are_used() -> None:
    files = [*REPO.glob("evaltrack/**/*.py"), REPO / "README.md", REPO / "CHANGELOG.md"]
    words = re.compile(r"\bSPEC\b|\b[Ss]eeds? 00\d|\bDESIGN\b")
    assert [str(path) for path in files if words.search(path.read_text(encoding="utf-8"))] == []


def test_the_drawing_is_the_contract() -> None:
    drawn: dict[int, set[str]] = {}
    for floor, room in re.findall(
        r"^\| (\d+) \| `(\w+)` \|", (REPO / "docs/architecture.md").read_text(), re.MULTILINE
    ):
        drawn.setdefault(int(floor), set()).add(room)
    contract = tomllib.loads((REPO / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    layers = [set(re.findall(r"evaltrack\.(\w+)", layer)) for layer in contract["layers"]]
    assert [drawn[floor] for floor in sorted(drawn, reverse=True)] == layers[1:]
    rooms = {path.stem for path in (REPO / "evaltrack").iterdir() if path.suffix in ("", ".py") and path.stem[0] != "_"}
    assert rooms == set().union(*layers) - {"__main__"}


def test_files_that_documents_name_are_there() -> None:
    for document in (REPO / "README.md", REPO / "CONTRIBUTING.md", *REPO.glob("docs/**/*.md")):
        for path in re.findall(r"`((?:evaltrack|tests|scripts|docs|golden)/[\w./-]+)`", document.read_text()):
            assert "NAME" in path or (REPO / path).exists(), f"{document.name}: {path}"


def test_the_error_tree_is_drawn_whole() -> None:
    for module in pkgutil.walk_packages(evaltrack.__path__, "evaltrack."):
        if not module.name.endswith(("__main__", ".ui.app")):
            import_module(module.name)
    lines = re.findall(r"^    (.*?)(\w+Error) +(\d) ", errors.__doc__ or "", re.MULTILINE)
    drawn = {name: (len(branch) // 4, int(code)) for branch, name, code in lines}
    assert drawn == {each.__name__: (depth, each.exit_code) for each, depth in _below(errors.EvaltrackError, 0)}


def _below(error: type[errors.EvaltrackError], depth: int) -> Iterator[tuple[type[errors.EvaltrackError], int]]:
    for each in error.__subclasses__():
        yield each, depth + 1
        yield from _below(each, depth + 1)


def test_functions_are_small() -> None:
    large = [
        f"{path.name}: {node.name}"
        for path in Path(evaltrack.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_large(node)
    ]
    assert large == []


def _is_large(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    names = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)} - {"self", "cls"}
    body = function.body[1:] if ast.get_docstring(function) else function.body
    lines = (function.end_lineno or 0) - body[0].lineno + 1 if body else 0
    return len(names) > 8 or lines > 50


def test_the_long_tests_exist() -> None:
    named = {tuple(line.partition("[")[0].split("::")) for line in (REPO / "tests/long.txt").read_text().splitlines()}
    texts = {file: (REPO / file).read_text() if (REPO / file).exists() else "" for file, _ in named}
    assert [f"{file}::{name}" for file, name in sorted(named) if f"def {name}(" not in texts[file]] == []
