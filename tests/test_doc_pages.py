"""The code blocks of the documents, and how they are run: those of a page in one folder, in their order.

A `bash` block is run as it stands; variables and the working folder carry over to the next one. A `python` block is
run, and any block with a `title` is written to the file of that name. A `text` block shows what the block before it
printed: each of its lines but `...` must be there, in that order. A comment above a block says what is otherwise:

    <!-- not run: why -->      it is only parsed
    <!-- ends with 1 -->       its exit code is not 0
    <!-- needs PACKAGE -->     it is run where that is installed
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

import click
import pytest
import yaml

from evaltrack.cli import cli
from evaltrack.errors import SITE, Guide
from scripts.references.commands import all_commands
from scripts.write_reference import PAGES

from . import warm
from .conftest import REPO
from .mlflow_server import free_port
from .openai_server import OpenAIServer

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)?(?P<rest>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
COMMENT = re.compile(r"<!--\s*(not run|ends with|needs)(?::\s*|\s+)((?:(?!-->).)*?)\s*-->\s*\Z", re.S)
EMPTY = "<!-- in an empty folder -->"
"""On the first lines of a page: its blocks start in an empty folder, else in one that holds the project's `golden`."""

HEX = re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}\b")
PORT = "8090"
"""The port of the reader's server in the pages; the tests take any free one."""

MODEL_SERVER = "http://127.0.0.1:11434/v1"
"""The reader's model server in the pages."""


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    title: str
    text: str
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    page, found = path.read_text(encoding="utf-8"), []
    for fence in FENCE.finditer(page):
        before, marks = page[: fence.start()].rstrip(), {}
        while comment := COMMENT.search(before):
            marks[comment[1]] = comment[2]
            before = before[: comment.start()].rstrip()
        title = re.search(r'title="([^"]+)"', fence["rest"])
        line = page.count("\n", 0, fence.start()) + 1
        text = textwrap.dedent(fence["text"])
        name = str(path.relative_to(REPO))
        found.append(Block(name, line, fence["language"] or "", title[1] if title else "", text, marks))
    return found


def pages() -> list[Path]:
    return [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]


class Reader:
    def __init__(self, folder: Path, model_server: str) -> None:
        self.folder, self._model_server = folder, model_server
        self._state, self._output, self._groups = folder.parent / "state.sh", "", list[int]()
        self._port = str(free_port())
        tools = folder.parent / "bin"
        tools.mkdir()
        warm.put_command(tools)
        path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.env = {**os.environ, "PATH": path, "PYTHONPATH": str(REPO), "EVALTRACK_RUN_TRACES": "off"}

    def follow(self, block: Block) -> None:
        text = block.text.replace(PORT, self._port).replace(MODEL_SERVER, self._model_server)
        if block.title:
            path = self.folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif block.language == "bash":
            self._run(block, text)
        elif block.language == "python":
            ended = warm.run(("-c", text), self.folder, self.env)
            self._output = ended.stdout
            assert ended.returncode == 0, f"{block.place}: {ended.stderr}"
        elif block.language == "text":
            _compare(block, self._output)

    def leave(self) -> None:
        for group in self._groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)

    def _run(self, block: Block, text: str) -> None:
        state = self._state
        before = f". {state}\n" if state.exists() else ""
        after = f"\n{{ export -p; printf 'cd %q\\n' \"$PWD\"; }} > {state}\n"
        with _Pipe() as pipe:
            process = subprocess.Popen(
                ["bash", "-euo", "pipefail", "-c", before + text + after],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=pipe.end,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self._groups.append(process.pid)
            code = process.wait(60)
            self._output = pipe.text()
        assert code == int(block.marks.get("ends with", "0")), f"{block.place}: exit code {code}\n{self._output}"
        if re.search(r"&\s*(#.*)?$", text):
            _await(int(self._port))


class _Pipe:
    """Reads a block's output: not from a file, where `evaltrack run` writes JSON. Background jobs may keep it open."""

    MARK = b"\0end\0"

    def __enter__(self) -> _Pipe:
        self._start, self.end = os.pipe()
        self._read = bytearray()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.end)

    def text(self) -> str:
        os.write(self.end, self.MARK)
        self._thread.join(30)
        return self._read.partition(self.MARK)[0].decode()

    def _collect(self) -> None:
        while self.MARK not in self._read:
            self._read += os.read(self._start, 1 << 16)


def is_possible(block: Block) -> bool:
    needed = block.marks.get("needs")
    return "not run" not in block.marks and (needed is None or any(distributions(name=needed)))


def lay_out(folder: Path, page: Path, database: Path) -> Path:
    start = folder / "project"
    start.mkdir()
    (folder / "evaltrack").symlink_to(REPO)
    shutil.copy(database, start / "mlflow.db")
    if EMPTY not in page.read_text(encoding="utf-8")[:400]:
        shutil.copytree(REPO / "golden", start / "golden")
    return start


def commands_in(block: Block) -> Iterator[str]:
    for line in block.text.replace("\\\n", " ").splitlines():
        call = re.fullmatch(r"\s*sh '(.*)'", line)
        if found := re.match(r"\s*(?:- |[A-Z_]+=\S+ |\.venv/bin/)*(evaltrack .*)", call[1] if call else line):
            for part in found[1].split("&& "):
                yield re.sub(r"\s+#.*|\s+(?:>|\||&).*", "", part)


def _narrow(line: str) -> str:
    return re.sub(r"(?<=\S) {2,}", "  ", line)


def _compare(block: Block, output: str) -> None:
    lines = iter([_narrow(_plain(line)) for line in output.splitlines()])
    for wanted in map(_narrow, map(_plain, block.text.splitlines())):
        if wanted and wanted != "...":
            assert any(line == wanted for line in lines), f"{block.place}: `{wanted}` is not there:\n{output}"


def _plain(line: str) -> str:
    return HEX.sub("ID", line).rstrip()


def _await(port: int) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")


BLOCKS = {path: blocks_of(path) for path in pages()}
EVERY = [block for blocks in BLOCKS.values() for block in blocks]
WRITTEN = [path for path, blocks in BLOCKS.items() if any(map(is_possible, blocks))]


def names(path: Path) -> str:
    return str(path.relative_to(REPO))


def place(block: Block) -> str:
    return block.place


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    with OpenAIServer() as server:
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


def test_a_block_names_its_language_and_why_it_is_not_run() -> None:
    assert [block.place for block in EVERY if len(block.marks.get("not run", "x" * 10)) < 10] == []
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
    style = str(REPO / "docs/style.md")
    texts[style] = re.sub(r"(?m)^\|[^|]*", "", texts[style])  # its first column shows what not to write
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
