"""The process that makes one page: little memory, a deadline, and nothing of the server's in its environment.

It reads a job and the paths of its files from its input, and writes the page to its output. An error that a reader can
do something about goes to its error output, as one line of JSON with the name of its class.
"""

from __future__ import annotations

import json
import pickle
import sys

REPORTED, OUT_OF_MEMORY = 4, 5
"""Exit codes where the error output names what is wrong, and where there was not memory enough."""


def main() -> int:
    """Make the page of the job in the input."""
    memory, seconds, size = map(int, sys.argv[1:4])
    from evaltrack.errors import EvaltrackError
    from evaltrack.system.limits import limit_server_page

    limit_server_page(memory, seconds, size)

    try:
        job, files = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this # nosec B301
        sys.stdout.buffer.write(job.page(files).encode())
        sys.stdout.buffer.flush()
    except EvaltrackError as error:
        sys.stderr.write(json.dumps({"kind": type(error).__name__, "message": error.message}))
        return REPORTED
    except MemoryError:
        return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main())
