"""The site and the README: every code block works, every link leads somewhere, the reference is the code's."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from evaltrack.cli import cli
from evaltrack.errors import SITE, Guide
from scripts.references.commands import all_commands
from scripts.write_reference import PAGES

from .conftest import REPO
from .doc_blocks import Block, Reader, blocks_of, commands_in, is_possible, lay_out, pages
from .openai_server import OpenAIServer

BLOCKS = {path: blocks_of(path) for path in pages()}
EVERY = [block for blocks in BLOCKS.values() for block in blocks]
WRITTEN = [path for path, blocks in BLOCKS.items() if any(map(is_possible, blocks))]


def names(path: Path) -> str:
    return str(path.relative_to(REPO))


def place(block: Block) -> str:
    return block.place


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """An OpenAI-compatible server that judges."""
    with OpenAIServer(models=("gpt-oss:20b",)) as server:
        yield server.base_url


@pytest.mark.parametrize("path", WRITTEN, ids=names)
def test_the_blocks_of_a_page_work(
    path: Path, tmp_path: Path, empty_database: Path, model_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(lay_out(tmp_path, path, empty_database), model_server)
    try:
        for block in filter(is_possible, BLOCKS[path]):
            reader.follow(block)
    finally:
        reader.leave()


def test_a_block_that_is_not_run_says_why() -> None:
    bare = [block.place for block in EVERY if "not run" in block.marks and len(block.marks["not run"]) < 10]
    assert bare == []


def test_a_block_names_its_language() -> None:
    assert [block.place for block in EVERY if not block.language] == []


@pytest.mark.parametrize("block", [each for each in EVERY if each.language != "text"], ids=place)
def test_a_block_is_well_formed(block: Block) -> None:
    if block.language == "python":
        compile(block.text, block.place, "exec")
    elif block.language == "bash":
        ended = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
        assert ended.returncode == 0, ended.stderr
    elif block.language == "yaml":
        list(yaml.safe_load_all(block.text))
    elif block.language == "toml":
        tomllib.loads(block.text)
    elif block.language == "json":
        for line in block.text.splitlines():
            json.loads(line)
    else:
        assert block.language in {"markdown", "groovy", "html", "xml"}


@pytest.mark.parametrize("block", [each for each in EVERY if any(commands_in(each))], ids=place)
def test_the_commands_of_a_block_are_there(block: Block) -> None:
    known = all_commands(cli)
    for line in commands_in(block):
        words = shlex.split(line)
        name = next((n for n in (" ".join(words[:3]), " ".join(words[:2])) if n in known), None)
        if name is None:
            assert words[1].startswith("-"), f"{block.place}: {line}"
            continue
        options = {flag for each in known[name].params for flag in (*each.opts, *each.secondary_opts)}
        used = {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][\w-]*(=.*)?", word)}
        assert used <= {*options, "--help", "-h"}, f"{block.place}: {line}"


@pytest.mark.parametrize("name", PAGES)
def test_the_reference_is_what_the_code_says(name: str) -> None:
    written = (REPO / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"run scripts/write_reference.py: {name} is out of date"


def test_every_option_has_help() -> None:
    for name, command in all_commands(cli).items():
        assert command.help, name
        for option in command.params:
            assert not isinstance(option, click.Option) or option.help, f"{name} {option.name}"


def test_users_read_plain_words() -> None:
    words = re.compile(
        r"\b(scatter|unsettled|asked again|stands|behind it|other content|anew|whoever|beside|comes to)\b", re.I
    )
    texts = {name: command.get_help(click.Context(command)) for name, command in all_commands(cli).items()}
    for path in (*REPO.glob("*.md"), *REPO.glob("docs/**/*.md")):
        texts[str(path)] = path.read_text(encoding="utf-8")
    assert {name: found for name, text in texts.items() if (found := words.findall(text))} == {}


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("zensical", reason="pip install -e '.[docs]'")
    settings = (REPO / "mkdocs.yml").read_text(encoding="utf-8")
    shutil.copytree(REPO / "docs", tmp_path / "docs")
    shutil.copy(REPO / "SECURITY.md", tmp_path)
    (tmp_path / "mkdocs.yml").write_text(settings)
    build = [sys.executable, "-m", "zensical", "build", "--strict", "--clean"]
    ended = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    built = {path: path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html")}
    assert len(built) > 25
    for path, page in built.items():
        loaded = re.findall(r"<(?:link|script|img|iframe)\b[^>]*?(?:src|href)=[\"']?(https?://[^\"' >]+)", page)
        assert [address for address in loaded if not address.startswith(SITE)] == [], path  # its own is a mere name
    for guide in Guide:
        page, _, anchor = guide.partition("#")
        headings = re.findall(r"<h[1-6] id=[\"']?([\w-]+)", built[tmp_path / "site" / page / "index.html"])
        assert anchor in headings, guide


def test_the_site_has_one_address() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    settings = (REPO / "mkdocs.yml").read_text(encoding="utf-8")
    assert project["urls"]["Documentation"] == SITE
    assert re.findall(r"^site_url: (\S+)", settings, re.MULTILINE) == [SITE]
    assert SITE.startswith("https://")
    assert SITE.endswith("/")


def test_every_page_is_in_the_navigation() -> None:
    text = (REPO / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    named = re.findall(r"([\w/-]+\.md)", text)
    assert sorted(named) == sorted(str(path.relative_to(REPO / "docs")) for path in (REPO / "docs").rglob("*.md"))


def test_links_of_the_readme_lead_to_files() -> None:
    page = (REPO / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page)
    assert len(links) > 20
    assert [link for link in links if not (REPO / link).exists()] == []
