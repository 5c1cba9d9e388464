"""OpenAI's Batch protocol for the loopback server: `/v1/files` and `/v1/batches`.

A batch ends after so many looks at it; its lines are answered by the server's own behaviour. What may go wrong with
one is scripted by `Trouble`, one for each batch in the order in which they begin.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.openai_behaviours import Reply, failure
from tests.openai_requests import Json, ill_formed, text_of

Answer = Callable[[Json], Reply]


@dataclass(frozen=True)
class Trouble:
    """What goes wrong with a batch: it ends with `status`; of each ten lines these `failed` or `expired`."""

    status: str = "completed"
    failed: frozenset[int] = frozenset()
    expired: frozenset[int] = frozenset()
    code: str = "invalid_request"
    cut_download: bool = False


@dataclass
class _Batch:
    id: str
    input: str
    metadata: Json
    trouble: Trouble
    status: str = "validating"
    looks: int = 0
    files: dict[str, str | None] = field(default_factory=dict)
    counts: Json = field(default_factory=lambda: {"total": 0, "completed": 0, "failed": 0})

    def body(self) -> Json:
        broken = {"code": self.trouble.code, "message": f"The batch is refused: {self.trouble.code}."}
        errors = {"object": "list", "data": [broken]} if self.status == "failed" else None
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "errors": errors,
            "input_file_id": self.input,
            "completion_window": "24h",
            "status": self.status,
            "output_file_id": self.files.get("output"),
            "error_file_id": self.files.get("error"),
            "created_at": int(time.time()),
            "request_counts": self.counts,
            "metadata": self.metadata,
        }


class BatchEndpoint:
    """The files and batches of one server. `asked` counts the prompts that were answered in batches."""

    def __init__(self, looks: int = 2, troubles: Sequence[Trouble] = (), max_lines: int = 50_000) -> None:
        self.looks, self.troubles, self.max_lines = looks, list(troubles), max_lines
        self.files: dict[str, tuple[str, bytes]] = {}
        self.batches: dict[str, _Batch] = {}
        self.asked: Counter[str] = Counter()
        self.uploads: list[bytes] = []
        self.deleted: list[str] = []
        self.lose_next_creation = False
        self._cut: set[str] = set()

    def answer(self, method: str, path: str, content: bytes, ask: Answer) -> Reply | None:
        """The reply to a request; None where it is for another endpoint."""
        _, room, *rest = path.partition("?")[0].strip("/").split("/")
        if room not in ("files", "batches"):
            return None
        reply = self._files(method, rest, content) if room == "files" else self._batches(method, rest, content, ask)
        return reply or failure(404, f"No such thing: {path}", "invalid_request_error")

    def _files(self, method: str, rest: list[str], content: bytes) -> Reply | None:
        match method, rest:
            case "POST", []:
                return self._upload(content)
            case "GET", []:
                return _listed([self._file(each) for each in reversed(self.files)])
            case "GET", [key, "content"] if key in self.files:
                return self._download(key)
            case "DELETE", [key] if key in self.files:
                self.deleted.append(key)
                del self.files[key]
                return _json({"id": key, "object": "file", "deleted": True})
        return None

    def _batches(self, method: str, rest: list[str], content: bytes, ask: Answer) -> Reply | None:
        match method, rest:
            case "POST", []:
                return self._begin(json.loads(content))
            case "GET", []:
                return _listed([each.body() for each in reversed(self.batches.values())])
            case "GET", [key] if key in self.batches:
                return self._look(self.batches[key], ask)
        return None

    def _upload(self, content: bytes) -> Reply:
        boundary, _, _ = content.partition(b"\r\n")
        for part in content.split(boundary):
            head, _, body = part.partition(b"\r\n\r\n")
            if name := re.search(rb'filename="([^"]*)"', head):
                key = f"file-{len(self.uploads)}"
                self.files[key] = (name[1].decode(), body.removesuffix(b"\r\n"))
                self.uploads.append(body.removesuffix(b"\r\n"))
                return _json(self._file(key))
        return failure(400, "Missing required parameter: 'file'.", "invalid_request_error")

    def _file(self, key: str) -> Json:
        name, content = self.files[key]
        size = {"bytes": len(content), "created_at": int(time.time())}
        return {"id": key, "object": "file", "filename": name, "purpose": "batch", "status": "processed", **size}

    def _download(self, key: str) -> Reply:
        _, content = self.files[key]
        if key in self._cut:
            self._cut.discard(key)
            return Reply(raw=content.decode(), wire="closed_amid")
        return Reply(raw=content.decode())

    def _begin(self, request: Json) -> Reply:
        assert request["endpoint"] == "/v1/chat/completions"
        assert request["completion_window"] == "24h"
        assert request["input_file_id"] in self.files
        trouble = self.troubles.pop(0) if self.troubles else Trouble()
        key = f"batch_{len(self.batches)}"
        made = self.batches[key] = _Batch(key, request["input_file_id"], request.get("metadata") or {}, trouble)
        if self.lose_next_creation:
            self.lose_next_creation = False
            return Reply(wire="closed_before")
        return _json(made.body())

    def _look(self, batch: _Batch, ask: Answer) -> Reply:
        batch.looks += 1
        if batch.status in ("validating", "in_progress"):
            batch.status = "in_progress"
            if batch.trouble.status == "failed":
                batch.status = "failed"
            elif batch.looks >= self.looks:
                self._run(batch, ask)
        return _json(batch.body())

    def _run(self, batch: _Batch, ask: Answer) -> None:
        lines = self.files[batch.input][1].splitlines()
        calls = [json.loads(line) for line in lines]
        assert len({call["custom_id"] for call in calls}) == len(calls) <= self.max_lines
        assert len({call["body"]["model"] for call in calls}) == 1
        output, errors = list[Json](), list[Json]()
        for number, call in enumerate(calls):
            assert (call["method"], call["url"]) == ("POST", "/v1/chat/completions")
            place = {"id": f"batch_req_{number}", "custom_id": call["custom_id"]}
            wrong = ill_formed(call["body"])
            if number % 10 in batch.trouble.expired:
                error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                errors.append({**place, "response": None, "error": error})
            elif wrong or number % 10 in batch.trouble.failed:
                said = {"message": wrong[0] if wrong else "The server had an error.", "type": "server_error"}
                failed = {"status_code": 400 if wrong else 500, "request_id": "r", "body": {"error": said}}
                errors.append({**place, "response": failed, "error": None})
            else:
                self.asked[prompt_of(call["body"])] += 1
                reply = ask(call["body"])
                body = json.loads(reply.body(call["body"]["model"], number))
                response = {"status_code": reply.status, "request_id": "r", "body": body}
                (output if reply.status == 200 else errors).append({**place, "response": response, "error": None})
        batch.status = batch.trouble.status
        batch.counts = {"total": len(calls), "completed": len(output), "failed": len(errors)}
        for kind, found in (("output", reversed(output)), ("error", errors)):
            text = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found)
            if text:
                key = batch.files[kind] = f"file-{batch.id}-{kind}"
                self.files[key] = (f"{kind}.jsonl", text.encode())
                if batch.trouble.cut_download:
                    self._cut.add(key)


def prompt_of(request: Json) -> str:
    """What a request shows the model, without the suffix of its tags."""
    return re.sub(r"(?<=[a-z])-[0-9a-f]{12}>", ">", "\n".join(text_of(request, "user")))


def _json(body: Any) -> Reply:
    return Reply(raw=json.dumps(body))


def _listed(data: list[Json]) -> Reply:
    return _json({"object": "list", "data": data, "has_more": False})
