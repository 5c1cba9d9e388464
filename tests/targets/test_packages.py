"""The packages of a target's environment, from real environments and from folders that were made."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import mlflow
import pytest

from evaltrack import compare_runs, run_eval
from evaltrack.compare.run_differences import RunDifference
from evaltrack.records.run import LONGEST_PACKAGES, OTHERS, packages_text, read_packages
from evaltrack.targets.python import packages_here
from tests.conftest import few_questions


def with_packages(folder: Path, *names: str) -> Path:
    """A folder of packages."""
    for name in names:
        (folder / f"{name}.dist-info").mkdir(parents=True)
    return folder


def test_those_of_this_interpreter() -> None:
    expected: dict[str, str] = {}
    for each in importlib.metadata.distributions():
        if (where := getattr(each, "_path", None)) and str(where).endswith(".dist-info"):
            expected.setdefault(each.metadata["Name"].replace("_", "-").lower(), each.version)
    assert len(expected) > 50
    found = packages_here()
    assert {name: found.get(name.replace(".", "-"), found.get(name)) for name in expected} == expected


def test_the_text_comes_back() -> None:
    packages = {"b": "1!2.0rc1+local", "a": "1.0"}
    assert packages_text(packages) == "a 1.0, b 1!2.0rc1+local"
    assert read_packages(packages_text(packages)) == packages
    assert packages_text({}) == ""
    many = {f"package-{n:04}": "1.0.0" for n in range(1000)}
    text, more = packages_text(many), packages_text(many | {"package-0999": "2.0.0"})
    assert len(text) < LONGEST_PACKAGES + 30
    held, other = read_packages(text), read_packages(more)
    assert held.keys() == other.keys()
    assert {name for name in held if held[name] != other[name]} == {OTHERS}
    assert read_packages("what, anybody wrote , a") == {"anybody": "wrote"}


def test_a_run_and_a_comparison(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = few_questions(tmp_path, 1)
    baseline = run_eval(golden, target=lambda question: [], judge="none", traces="off", tracking_uri=store_uri)
    tag = mlflow.MlflowClient(store_uri).get_run(baseline.run_id).data.tags["evaltrack.packages"]
    assert read_packages(tag) == packages_here()
    monkeypatch.syspath_prepend(with_packages(tmp_path / "more", "chromadb-1.0.0"))
    packages_here.cache_clear()
    try:
        candidate = run_eval(golden, target=lambda question: [], judge="none", traces="off", tracking_uri=store_uri)
    finally:
        packages_here.cache_clear()
    compared = compare_runs(candidate.run_id, baseline=baseline.run_id, tracking_uri=store_uri)
    differences = [each for each in compared.differences if each.name.startswith("package")]
    assert differences == [RunDifference("package chromadb", None, "1.0.0")]
