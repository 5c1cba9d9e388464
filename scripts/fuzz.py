#!/usr/bin/env python3
"""Feed every reader of foreign data with damaged, hostile and made-up input, and find what it does not expect.

Inputs are mutated from seeds (the project's own golden and recorded files, and small ones of each kind) or written from
the names that a reader knows; both get nasty tokens: NUL, halves of surrogate pairs, 1e999, integers of thousands of
digits, 100,000 levels of nesting, byte-order marks, CRLF, duplicate keys, invalid UTF-8, bidi marks, words of 1 MB.
Parquet and SQLite files get damaged bytes, false footers, and small content that expands.

A finding is an exception that the reader does not document, an input that takes more than 5 s of computing or makes the
process hold more than 500 MB, a traceback or an internal error on the command line, or something that was read and
cannot be kept and given back. Each is printed once, with the file that its input is kept in; that file alone shows it
again: `--replay FILE`. Readers in C (Parquet, SQLite) have a process of their own for each input, which may crash.

    python scripts/fuzz.py --seconds 600 --seed 0

Exits 1 on a finding; prints inputs and bytes fed by reader, and the memory held at most.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))


def command_line() -> int:
    """Run it; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=600, help="how long; default: 600")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs; default: 0")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-findings"), help="folder; default: fuzz-findings")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="give an input that was kept to its reader again")
    chosen = parser.parse_args()
    os.environ |= {"EVALTRACK_DEBUG": "", "MLFLOW_DISABLE_TELEMETRY": "true"}
    os.environ["OPENAI_BASE_URL"] = "http://127.0.0.1:9/v1"  # nothing is asked; a judge wants an address
    with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as own:
        for name in ("EVALTRACK_STATE_DIR", "EVALTRACK_CACHE_DIR"):
            os.environ[name] = str(Path(own) / name)
        from scripts.fuzzing.loop import Fuzz, replay
        from scripts.fuzzing.replies import reply_readers
        from scripts.fuzzing.tables import table_readers
        from scripts.fuzzing.tags import tag_readers
        from scripts.fuzzing.texts import text_readers

        readers = text_readers() | reply_readers() | tag_readers() | table_readers()
        if chosen.replay:
            replay(readers, chosen.replay)
            return 0
        fuzz = Fuzz(chosen.keep)
        fuzz.run(readers, chosen.seconds, chosen.seed)
        fuzz.report()
        return int(bool(fuzz.findings))


if __name__ == "__main__":
    sys.exit(command_line())
