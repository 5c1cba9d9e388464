"""The composite action as GitHub's runner runs it: its steps in order with bash, and a `gh` that speaks to a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from .conftest import REPO
from .warm import put_command

ACTION: dict[str, Any] = yaml.safe_load((REPO / "scripts/github/action.yml").read_text())
COMMENT: dict[str, Any] = yaml.safe_load((REPO / "scripts/github/comment/action.yml").read_text())
BOT = "github-actions[bot]"

GH = (
    f"#!{sys.executable}\n"
    + """
import json, sys
from pathlib import Path

place, options, words = "", {}, iter(sys.argv[2:])
for word in words:
    if word.startswith("-") and word != "--paginate":
        options[word] = next(words)
    elif word != "--paginate":
        place = word
file = Path(__file__).with_name("hub.json")
hub = json.loads(file.read_text())
comments = hub["comments"]
if hub["refuses"]:
    sys.exit("gh: Resource not accessible by integration (HTTP 403)\\n::error::not ours")
if place == "graphql":
    answer = {"data": {"viewer": {"login": hub["login"]}}}
elif "-F" in options:
    body = Path(options["-F"].removeprefix("body=@")).read_text()
    if options.get("-X") == "PATCH":
        next(each for each in comments if each["id"] == int(place.rpartition("/")[2]))["body"] = body
    else:
        comments.append({"id": len(comments) + 1, "user": {"login": hub["login"]}, "body": body})
    file.write_text(json.dumps(hub))
    answer = {}
else:  # two pages, as `gh api --paginate` prints them
    print(json.dumps(comments[:1]))
    answer = comments[1:]
print(json.dumps(answer))
"""
)


@dataclass
class Job:
    """The job of the gate, in a work tree that is there, and the one that comments."""

    tree: Path
    temp: Path
    inputs: dict[str, str]
    base: str = ""
    env: dict[str, str] = field(default_factory=dict)
    output: str = ""

    def __post_init__(self) -> None:
        self.temp.mkdir(exist_ok=True)
        (self.temp / "bin").mkdir(exist_ok=True)
        (self.temp / "bin" / "gh").write_text(GH)
        (self.temp / "bin" / "gh").chmod(0o755)
        put_command(self.temp / "bin")
        self.outputs: dict[str, dict[str, str]] = {}
        self.hub(())

    def hub(self, comments: tuple[tuple[str, str], ...], *, refuses: bool = False) -> None:
        held = [{"id": place, "user": {"login": who}, "body": body} for place, (who, body) in enumerate(comments, 1)]
        (self.temp / "bin/hub.json").write_text(json.dumps({"login": BOT, "refuses": refuses, "comments": held}))

    @property
    def comments(self) -> list[tuple[str, str]]:
        held = json.loads((self.temp / "bin/hub.json").read_text())["comments"]
        return [(each["user"]["login"], each["body"]) for each in held]

    @property
    def summary(self) -> str:
        path = self.temp / "summary"
        return path.read_text() if path.exists() else ""

    def run(self) -> int:
        """All steps, and the comment; the exit code of the first step of the gate that fails, 0 where none does."""
        code = 0
        for step in ACTION["runs"]["steps"]:
            if "run" in step and not code:
                code = self.step(step["name"]).returncode
        self.step("Comment")
        return code

    def step(self, name: str, **env: str) -> subprocess.CompletedProcess[str]:
        """One step, with `env` over what the action sets."""
        step = next(each for made in (ACTION, COMMENT) for each in made["runs"]["steps"] if each["name"] == name)
        outputs = self.temp / "output"
        outputs.write_text("")
        ended = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=self.tree,
            env=self._env(outputs, name) | {key: self._value(value) for key, value in step["env"].items()} | env,
            capture_output=True,
            text=True,
            timeout=240,
        )
        self.output += ended.stdout + ended.stderr
        self.outputs[step.get("id", name)] = dict(re.findall(r"(?m)^(\w+)=(.*)$", outputs.read_text()))
        return ended

    def _env(self, outputs: Path, step: str) -> dict[str, str]:
        places = (self.temp / "bin", Path(sys.executable).parent, os.environ["PATH"])
        return {
            **os.environ,
            "PATH": os.pathsep.join(map(str, places)),
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(REPO / "scripts/github" / ("comment" if step == "Comment" else "")),
            "GITHUB_STEP_SUMMARY": str(self.temp / "summary"),
            "GITHUB_OUTPUT": str(outputs),
            "GITHUB_REPOSITORY": "o/r",
            **self.env,
        }

    def _value(self, text: str) -> str:
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda match: self._first(match[1]), text)

    def _first(self, expression: str) -> str:
        return next(filter(None, map(self._one, expression.split(" || "))), "")

    def _one(self, name: str) -> str:
        first, _, rest = name.partition(".")
        if first == "inputs":
            inputs = ACTION["inputs"] | COMMENT["inputs"]
            return self.inputs[rest] if rest in self.inputs else self._value(inputs[rest].get("default", ""))
        if first == "steps":
            step, _, key = rest.partition(".outputs.")
            return self.outputs.get(step, {}).get(key, "")
        event = {"github.event.pull_request.base.sha": self.base, "github.event.pull_request.number": "7"}
        return event.get(name, "")


def job(folder: Path, base: str = "", **inputs: str) -> Job:
    given = {"golden": "small.jsonl", "target": "recorded:answers.jsonl"}
    return Job(folder / "tree", folder / "temp", given | inputs, base)


def repository(folder: Path, files: dict[str, str]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return commit(folder, files)


def commit(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "--all")
    git(folder, "-c", "user.name=a", "-c", "user.email=a@b.example", "commit", "--quiet", "--message", "x")
    return git(folder, "rev-parse", "HEAD")


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()
