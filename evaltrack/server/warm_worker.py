"""A process that has imported what pages need, and forks one for each page: importing takes longer than most pages.

Its input is a socket. A message holds the arguments of `page_worker` and four descriptors: input, output and error
output of the page's process, and where its exit code goes. It ends with the server, or after a while without a page.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import traceback
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

IDLE = 600.0
"""Seconds without a page after which it ends: it holds some 150 MB."""

TIMED_OUT = "timed out"
IMPORTS = (
    "pandas",
    "pyarrow.parquet",
    "scipy.special",
    "evaltrack.api.compare_sides",
    "evaltrack.api.question_history",
    "evaltrack.api.report_html",
    "evaltrack.compare.engine",
    "evaltrack.report.html.comparison_page",
    "evaltrack.report.run.stored_summary",
    "evaltrack.server.page_jobs",
    "evaltrack.server.rehearsal",
)


def main() -> int:
    """Fork a process for each message until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end of the server is the end of the socket
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for name in IMPORTS:
        import_module(name)
    templates = import_module("evaltrack.report.html.page").templates()
    for name in templates.list_templates():
        templates.get_template(name)
    import_module("evaltrack.server.rehearsal").rehearse()
    gc.collect()
    gc.freeze()  # a page's process copies no memory just because garbage is looked for in it
    door = socket.socket(fileno=os.dup(0))
    door.settimeout(IDLE)
    with suppress(TimeoutError, ConnectionError):
        while True:
            message, descriptors, _, _ = socket.recv_fds(door, 1024, 4)
            if len(descriptors) < 4:
                break
            if os.fork() == 0:
                door.close()
                _attend(message.decode().split(), descriptors)
            for each in descriptors:
                os.close(each)
    return 0


def _attend(arguments: list[str], descriptors: list[int]) -> NoReturn:
    """Fork the process that makes the page, and report how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    page = os.fork()
    if page == 0:
        _make(arguments, descriptors[:3])
    late = False

    def stop(*_: object) -> None:
        nonlocal late
        late = True
        os.kill(page, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(arguments[1]))
    code = os.waitstatus_to_exitcode(os.waitpid(page, 0)[1])
    with suppress(OSError):  # the server has gone
        os.write(descriptors[3], (TIMED_OUT if late else str(code)).encode())
    os._exit(0)


def _make(arguments: list[str], descriptors: list[int]) -> NoReturn:
    """Make the page as a process that was started for it does."""
    from evaltrack.server import page_worker

    for own, each in enumerate(descriptors):
        os.dup2(each, own)
    sys.argv[1:] = arguments
    code = 1
    try:
        code = page_worker.main()
    except BaseException:  # noqa: BLE001 - whatever it is, the server's log gets it
        traceback.print_exc()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
