"""Pages that take long: a browser is sent their head at once, and the rest when it is made; no script is needed.

Whoever does not say that it reads HTML, as a program does, gets the whole with the status that it deserves. So does a
browser where the page is ready, or has failed, within `HEAD_SECONDS`.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from dataclasses import dataclass
from threading import Thread

from flask import Response, make_response, request, stream_with_context

from evaltrack.report.html.page import BODY
from evaltrack.server.shell import late_problem, page_templates

HEAD_SECONDS = 0.06


@dataclass(frozen=True)
class Pending:
    """What is shown until the page comes: the head of its document, where it is, and what it is about."""

    head: str
    crumbs: tuple[tuple[str, str], ...]
    heading: str


def streamed(pending: Pending, make: Callable[[], str | bytes]) -> Response:
    """The page that `make` gives, a whole document that begins with the same head up to its title.

    Where `make` raises after the head was sent, what went wrong is shown in its place.

    Raises:
        Exception: whatever `make` raises before.
    """
    if request.method == "HEAD" or "text/html" not in request.headers.get("Accept", ""):
        return make_response(make())
    made: Future[str | bytes] = Future()
    context = contextvars.copy_context()
    Thread(target=context.run, args=(_fulfil, made, make), daemon=True, name="evaltrack-page").start()
    if wait([made], HEAD_SECONDS).done:
        return make_response(made.result())
    head = page_templates().get_template("pending.html").render(pending=pending)
    parts = stream_with_context(_parts(pending.head + head, made))
    answer = Response(parts, mimetype="text/html")
    answer.headers["X-Accel-Buffering"] = "no"  # nginx would wait for the end
    return answer


def _fulfil(made: Future[str | bytes], make: Callable[[], str | bytes]) -> None:
    try:
        made.set_result(make())
    except BaseException as error:  # noqa: BLE001 - it is raised where the page is waited for
        made.set_exception(error)


def _parts(head: str, made: Future[str | bytes]) -> Iterator[bytes]:
    yield head.encode()
    error = made.exception()
    if error is not None:
        yield f"{late_problem(error)}\n</body>\n</html>\n".encode()
        return
    whole = made.result()
    yield (whole.encode() if isinstance(whole, str) else whole).partition(BODY.encode())[2]
