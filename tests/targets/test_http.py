"""Questions posted to a server: a real one on the loopback interface, which answers as each test says."""

from __future__ import annotations

import asyncio
import gc
import gzip
import itertools
import json
import logging
import socket
import threading
import time
import zlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from evaltrack import run_eval
from evaltrack.records import Question, Response
from evaltrack.targets.failures import InvalidResponseError
from evaltrack.targets.http import HttpTarget, HttpTargetError, open_http, request_body
from evaltrack.targets.responses import MAX_BYTES, compile_expression
from tests.actors import asked as asked_once
from tests.actors import gathered
from tests.files import data
from tests.mlflow_server import free_port

QUESTION = Question(id="q-1", question="Ça va? “Yes”", domain="d")
SECRET = "tok-9f8e7d6c5b4a"
TABLES = data("targets.json")


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answer = Callable[["Handler"], None]


@dataclass
class Server:
    """What the server was asked, and what it answers."""

    answer: Answer
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    sent: int = 0
    connections: Iterator[int] = field(default_factory=itertools.count)
    release: threading.Event = field(default_factory=threading.Event)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Server

    def setup(self) -> None:
        super().setup()
        self.number = next(self.script.connections)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.script.requests.append(Request(self.command, self.path, dict(self.headers), body, self.number))
        self.script.answer(self)

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def reply(self, body: bytes | str | object, status: int = 200, **headers: str) -> None:
        """A whole response, in one piece; what is neither bytes nor text is sent as JSON."""
        raw = body if isinstance(body, bytes) else (body if isinstance(body, str) else json.dumps(body)).encode()
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(raw)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.raw("\r\n".join([*lines, "", ""]).encode() + raw, close=False)

    def raw(self, data: bytes, *, close: bool = True) -> None:
        """Bytes as they are."""
        self.wfile.write(data)
        self.script.sent += len(data)
        self.close_connection = close

    def flood(self, chunk: bytes, status: int = 200, limit: int = 200 << 20) -> None:
        """The chunk again and again, until the client hangs up."""
        self.raw(f"HTTP/1.1 {status} Said\r\n\r\n".encode())
        with suppress(OSError):
            while self.script.sent < limit:
                self.raw(chunk)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class ManyAtOnce(ThreadingHTTPServer):
    request_queue_size = 512


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose answer each test sets; by default it says yes."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    script = Server(lambda handler: handler.reply({"answer": "yes"}))
    http = ManyAtOnce(("127.0.0.1", 0), type("Scripted", (Handler,), {"script": script}))
    http.daemon_threads = True
    script.url = f"http://127.0.0.1:{http.server_address[1]}"
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield script
    script.release.set()
    http.shutdown()
    http.server_close()


def asked(target: HttpTarget) -> Response:
    return asked_once(target, QUESTION, close=True)


def ask(server: Server, path: str = "/ask", **settings: str) -> Response:
    return asked(open_http(server.url + path, settings))


def error_of(server: Server, answer: Answer, kind: type[Exception] = HttpTargetError, **settings: str) -> str:
    """The message if the server answers so."""
    server.answer = answer
    with pytest.raises(kind) as caught:
        ask(server, **settings)
    return str(caught.value)


def run_on_one_loop(*calls: Callable[[], Awaitable[object]]) -> None:
    async def one_after_the_other() -> None:
        for call in calls:
            await call()

    asyncio.run(one_after_the_other())
    gc.collect()


# Asking


def test_what_is_sent(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Question, k and id are posted as JSON to the URL with its query, without its fragment; or a body of one's own.

    Headers come from the environment, with a scheme where one is named, and replace ours.
    """
    assert ask(server, "/v1/ask?lang=fr&x=%2F#top") == Response(answer="yes")
    monkeypatch.setenv("MY_KEY", f" {SECRET}\n")
    monkeypatch.setenv("agent_2", "mine")
    body = "{messages: [{role: 'user', content: question}], filters: {top_k: k, lang: `[\"fr\"]`}}"
    headers = {"header.Authorization": "Bearer MY_KEY", "header.x-key": "MY_KEY", "header.user-agent": "agent_2"}
    ask(server, **headers, body=body)
    first, second = server.requests
    assert (first.method, first.path) == ("POST", "/v1/ask?lang=fr&x=%2F")
    assert json.loads(first.body) == {"question": "Ça va? “Yes”", "k": 5, "id": "q-1"}
    assert first.headers["Content-Type"] == first.headers["Accept"] == "application/json"
    assert first.headers["User-Agent"] == "evaltrack"
    assert "Ça va? “Yes”".encode() in first.body
    messages = [{"role": "user", "content": "Ça va? “Yes”"}]
    assert json.loads(second.body) == {"messages": messages, "filters": {"top_k": 5, "lang": ["fr"]}}
    assert (second.headers["Authorization"], second.headers["x-key"]) == (f"Bearer {SECRET}", SECRET)
    assert [value for name, value in second.headers.items() if name.lower() == "user-agent"] == ["mine"]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, bytes])
def test_compressed_responses_are_read(server: Server, pack: Callable[[bytes], bytes]) -> None:
    encoding = {gzip.compress: "gzip", zlib.compress: "deflate"}.get(pack, "identity")
    packed = pack(json.dumps({"answer": "yes" * 1000}).encode())
    server.answer = lambda handler: handler.reply(packed, Content_Encoding=encoding)
    assert ask(server) == Response(answer="yes" * 1000)
    assert server.requests[0].headers["Accept-Encoding"] == "gzip, deflate"


def test_connections_are_kept_until_the_target_is_closed_and_carry_no_cookies(server: Server) -> None:
    server.answer = lambda handler: handler.reply({"answer": "yes"}, Set_Cookie="session=1; Path=/")
    target = open_http(server.url, {})
    again = [target.aclose, target.aclose, lambda: target(QUESTION, 5), target.aclose]
    run_on_one_loop(target.aclose, *[lambda: target(QUESTION, 5)] * 20, *again)
    assert [request.connection for request in server.requests] == [*[0] * 20, 1]
    assert all("Cookie" not in request.headers for request in server.requests)


def test_as_many_questions_are_in_flight_as_the_run_loop_asks(server: Server) -> None:
    barrier = threading.Barrier(150, timeout=20)

    def together(handler: Handler) -> None:
        barrier.wait()
        handler.reply({"answer": "yes"})

    server.answer = together
    target = open_http(server.url, {})

    async def all_of_them() -> list[Response]:
        answers = await asyncio.gather(*[target(QUESTION, 5) for _ in range(150)])
        await target.aclose()
        return answers

    assert asyncio.run(all_of_them()) == [Response(answer="yes")] * 150


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("/new/ask", "/new/ask"),
        ("http://me:private@127.0.0.1:1/ask?key=private", "http://127.0.0.1:1/ask?key=***"),
        ("http://h:port/" + "x" * 1000, "http://h:port/" + "x" * 185 + "…"),
    ],
)
def test_a_redirect_is_not_followed_as_headers_would_go_with_it(server: Server, location: str, shown: str) -> None:
    said = error_of(server, lambda handler: handler.reply("moved", 307, Location=location))
    assert said == f"status 307: moved; it redirects to {shown}: name that URL as the target"
    assert error_of(server, lambda handler: handler.reply(b"", 304)) == "status 304: (an empty body)"
    assert len(server.requests) == 2


# Failures


def test_error_status(server: Server) -> None:
    """An error status is shown with the beginning of the response, on one bounded line; nothing is asked twice."""
    message = error_of(server, lambda handler: handler.reply("<h1>No\n\n\x1b[31m</h1>" + "x" * 300_000, 500))
    assert message == "status 500: <h1>No \ufffd[31m</h1>" + "x" * (199 - len("<h1>No x[31m</h1>")) + "…"
    assert error_of(server, lambda handler: handler.reply({"detail": "slow down"}, 429)) == (
        'status 429: {"detail": "slow down"}'
    )
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [500, 200])
def test_secrets_are_not_shown(server: Server, monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    monkeypatch.setenv("TENANT", "no")

    def answer(handler: Handler) -> None:
        sent = handler.headers["Authorization"]
        handler.reply(f"<p>{sent}</p>{'-' * (200 - 16 - len(sent))}{sent[7:]}", status)

    kind = HttpTargetError if status == 500 else InvalidResponseError
    message = error_of(server, answer, kind, **{"header.Authorization": "Bearer MY_KEY"})
    assert "<p>***</p>" in message
    assert SECRET[:4] not in message
    short = error_of(server, lambda handler: handler.reply("not now", 500), **{"header.X-Tenant": "TENANT"})
    assert short == "status 500: not now"


def test_secrets_are_not_logged(
    server: Server, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", SECRET)
    caplog.set_level(logging.DEBUG)
    target = open_http(server.url, {"header.Authorization": "Bearer MY_KEY"})
    asked(target)
    assert caplog.records
    assert SECRET not in caplog.text
    assert SECRET not in repr(target)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", "peer closed connection without sending complete"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", "peer closed connection without sending"),
        (b"", "Server disconnected without sending a response"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "illegal status line"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 1_000_000 + b"\r\n\r\n{}", "Receive buffer too long"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 100_000 + b"\r\n{}", "Receive buffer too long"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "conflicting Content-Length headers"),
    ],
)
def test_broken_off(server: Server, data: bytes, reason: str) -> None:
    """A response that is cut off, has headers without end, or is no HTTP is an error, and is not asked for again."""
    message = error_of(server, lambda handler: handler.raw(data))
    assert message.startswith("the server closed the connection, or does not speak HTTP: ")
    assert reason in message
    assert len(server.requests) == 1


CUT_OFF = "the response is longer than 16,777,216 bytes and was cut off"


def test_huge(server: Server) -> None:
    """A response without end is cut off soon after the limit; of an error page only the beginning is read."""
    assert error_of(server, lambda handler: handler.flood(b" " * (1 << 20))) == CUT_OFF
    assert server.sent < 2 * MAX_BYTES
    server.sent = 0
    message = error_of(server, lambda handler: handler.flood(b"x" * 65536, status=503))
    assert message == f"status 503: {'x' * 199}…"
    assert server.sent < MAX_BYTES


@pytest.mark.parametrize("times", [1, 2])
def test_decompression_bomb(server: Server, times: int) -> None:
    """A response that is huge once decompressed is cut off too, also where it is packed twice."""
    bomb = b" " * (128 << 20)
    for _ in range(times):
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        bomb = packer.compress(bomb) + packer.flush()
    encoding = ", ".join(["gzip"] * times)
    start = time.process_time()
    assert error_of(server, lambda handler: handler.reply(bomb, Content_Encoding=encoding)) == CUT_OFF
    assert time.process_time() - start < 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate", ", ".join(["gzip"] * 9)])
def test_a_response_that_is_not_compressed_as_it_says_is_invalid(server: Server, encoding: str) -> None:
    message = error_of(
        server, lambda each: each.reply({"answer": "y"}, Content_Encoding=encoding), InvalidResponseError
    )
    assert message == "cannot be decompressed"


@pytest.mark.parametrize("trickle", [False, True])
def test_slow(server: Server, trickle: bool) -> None:
    """A server that says nothing, or a byte now and then, is left at the deadline of the run, and the next asked."""

    def answer(handler: Handler) -> None:
        if len(server.requests) > 1:
            handler.reply({"answer": "yes"})
            return
        if trickle:
            handler.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
        with suppress(OSError):
            while not server.release.wait(0.05):
                handler.raw(b" " if trickle else b"")

    server.answer = answer
    start = time.monotonic()
    first, second = gathered([QUESTION] * 2, open_http(server.url, {}), concurrency=1, timeout=0.5)
    assert first.error == "target_timeout: no response within 0.5 s"
    assert second.answer == "yes"
    assert time.monotonic() - start < 3
    gc.collect()


def test_servers_that_are_not_there_or_do_not_answer(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the address without the path; a far deadline of the run does not matter."""
    monkeypatch.setattr("evaltrack.targets.http.CONNECT_SECONDS", 0.3)
    url = f"http://127.0.0.1:{free_port()}"
    refused = f"^cannot connect to {url}: All connection attempts failed; is the server running\\?$"
    with pytest.raises(HttpTargetError, match=refused):
        asked(open_http(f"{url}/ask?key=private", {}))
    with pytest.raises(HttpTargetError, match=r"^cannot connect to https://127.0.0.1:\d+: .*SSL.*; is the server"):
        asked(open_http(server.url.replace("http:", "https:"), {}))
    with socket.create_server(("127.0.0.1", 0), backlog=0) as busy, ExitStack() as waiting:
        for _ in range(2):
            waiter = waiting.enter_context(socket.socket())
            waiter.setblocking(False)
            waiter.connect_ex(busy.getsockname())
        with pytest.raises(HttpTargetError, match=r"^cannot connect to http://127.0.0.1:\d+: ConnectTimeout; is"):
            asked(open_http(f"http://127.0.0.1:{busy.getsockname()[1]}/", {}))


# Bodies

TURNS = [{"role": "user", "content": "Salut!"}, {"role": "assistant", "content": "Oui?"}]


@pytest.mark.parametrize(("body", "plain", "told"), TABLES["bodies"])
def test_a_body_names_the_turns(body: str, plain: object, told: object) -> None:
    """What is sent of a question without turns and of one with; `told` is None where they are the same."""
    asked = QUESTION.model_copy(update={"question": "Ça va?"})
    with_turns = Question.model_validate(asked.model_dump() | {"history": TURNS})
    expression = compile_expression("http", "body", body) if body else None
    assert json.loads(request_body(expression, asked, 5)) == plain
    assert json.loads(request_body(expression, with_turns, 5)) == (plain if told is None else told)
    assert open_http("http://localhost/", {"body": body} if body else {}).takes_history == (told is not None)


def test_a_body_that_gives_nothing_is_not_sent(server: Server) -> None:
    with pytest.raises(InvalidResponseError, match="body: gives nothing; choose from question, k, id, history and"):
        ask(server, body="text")
    assert not server.requests


def test_a_server_that_says_elsewhere_that_it_failed(server: Server, store_uri: str) -> None:
    down = {"answer": None, "sources": [], "state": "error", "message": "vector store timeout"}
    questions = [{"id": n, "question": f"{n}?", "expected_chunks": ["a"] if n < 3 else []} for n in range(1, 5)]

    def answer(handler: Handler) -> None:
        asked_of = json.loads(server.requests[-1].body)["id"]
        handler.reply(down if asked_of in "13" else {"answer": "x", "sources": ["a"], "state": "ok"})

    server.answer = answer
    shared = {"target": server.url, "tracking_uri": store_uri, "traces": "off", "concurrency": 1}
    made = run_eval(questions, **shared)
    said = "responses have fields that are not read: state (in 4), message (in 2); if one of them says that the target"
    assert any(note.startswith(said) for note in made.notes)
    assert (made.totals["num_errors"], made.metrics["recall_at_k"]) == (0, 0.5)
    made = run_eval(questions, **shared, target_options={"error": "state == 'error' && message"})
    assert (made.totals["num_errors"], made.metrics["recall_at_k"], made.metrics["negative_pass_rate"]) == (2, 1, 0)
    assert made.rows[0]["error"].endswith("the target returned an error: vector store timeout")
    assert not any("are not read" in note for note in made.notes)
