"""The code blocks of the documents, and how they are run: those of a page in one folder, in their order.

A `bash` block is run as it stands; variables and the working folder carry over to the next one. A `python` block is
run, and any block with a `title` is written to the file of that name. A `text` block shows what the block before it
printed: each of its lines but `...` must be there, in that order. A comment above a block says what is otherwise:

    <!-- not run: why -->      it is only parsed
    <!-- ends with 1 -->       its exit code is not 0
    <!-- needs PACKAGE -->     it is run where that is installed
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

from . import warm
from .conftest import REPO
from .mlflow_server import free_port

FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)?(?P<rest>[^\n`]*)\n(?P<text>.*?)^(?P=indent)```[ ]*$", re.M | re.S
)
COMMENT = re.compile(r"<!--\s*(not run|ends with|needs)(?::\s*|\s+)((?:(?!-->).)*?)\s*-->\s*\Z", re.S)
EMPTY = "<!-- in an empty folder -->"
"""On the first lines of a page: its blocks start in an empty folder, else in one that holds the project's `golden`."""

HEX = re.compile(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}\b")
PORT = "8090"
"""What pages take for a server of the reader's; here it is any free port."""

MODEL_SERVER = "http://127.0.0.1:11434/v1"
"""What pages take for the reader's model server."""


@dataclass(frozen=True)
class Block:
    """One code block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"


def blocks_of(path: Path) -> list[Block]:
    """All code blocks of a page, in their order."""
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
    """The README and all pages of the site."""
    return [REPO / "README.md", *sorted((REPO / "docs").rglob("*.md"))]


class Reader:
    """Somebody who does what a page says, in a folder of their own."""

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
        """Do what one block says."""
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
        """End what was left in the background."""
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
    """What a block prints: not into a file, where `evaltrack run` writes JSON. What runs on may hold its end open."""

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
        """All that was printed until now."""
        os.write(self.end, self.MARK)
        self._thread.join(30)
        return self._read.partition(self.MARK)[0].decode()

    def _collect(self) -> None:
        while self.MARK not in self._read:
            self._read += os.read(self._start, 1 << 16)


def is_possible(block: Block) -> bool:
    """Whether it is to be run, and what it needs is here."""
    needed = block.marks.get("needs")
    return "not run" not in block.marks and (needed is None or any(distributions(name=needed)))


def lay_out(folder: Path, page: Path, database: Path) -> Path:
    """The folder that a page starts in, with an MLflow database that has its tables already."""
    start = folder / "project"
    start.mkdir()
    (folder / "evaltrack").symlink_to(REPO)
    shutil.copy(database, start / "mlflow.db")
    if EMPTY not in page.read_text(encoding="utf-8")[:400]:
        shutil.copytree(REPO / "golden", start / "golden")
    return start


def commands_in(block: Block) -> Iterator[str]:
    """Every line that calls evaltrack, continued lines joined."""
    for line in block.text.replace("\\\n", " ").splitlines():
        call = re.fullmatch(r"\s*sh '(.*)'", line)
        if found := re.match(r"\s*(?:- |[A-Z_]+=\S+ |\.venv/bin/)*(evaltrack .*)", call[1] if call else line):
            for part in found[1].split("&& "):
                yield re.sub(r"\s+#.*|\s+(?:>|\||&).*", "", part)


def _narrow(line: str) -> str:
    """The line with two spaces between its columns."""
    return re.sub(r"(?<=\S) {2,}", "  ", line)


def _compare(block: Block, output: str) -> None:
    """Each line of what is shown was printed, in that order; ids of runs differ, and how wide a column is."""
    lines = iter([_narrow(_plain(line)) for line in output.splitlines()])
    for wanted in map(_narrow, map(_plain, block.text.splitlines())):
        if wanted and wanted != "...":
            assert any(line == wanted for line in lines), f"{block.place}: `{wanted}` is not there:\n{output}"


def _plain(line: str) -> str:
    return HEX.sub("ID", line).rstrip()


def _await(port: int) -> None:
    """Wait until something listens there, as a reader sees it say so."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing listens on port {port}")
