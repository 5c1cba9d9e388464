"""The loop that feeds readers, and keeps what they did not expect."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from scripts.fuzzing.feeding import PEAK, bound_memory, feed
from scripts.fuzzing.reader import Reader


@dataclass
class Fuzz:
    """Counts of the inputs, and the findings."""

    keep: Path
    fed: Counter[str] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    peak: int = 0
    findings: dict[tuple[str, ...], int] = field(default_factory=dict)

    def feed(self, name: str, reader: Reader, folder: Path, raw: bytes) -> None:
        """Give one input to a reader."""
        self.fed[name] += len(raw)
        self.inputs[name] += 1
        found = feed(reader, folder, raw)
        self.slowest[name] = max(self.slowest.get(name, 0.0), found.seconds)
        if found.error:
            self._add(name, found.error, found.message, found.where, raw)
        if found.peak > PEAK and (reader.native or found.peak > self.peak):
            self._add(name, "Memory", f"{found.peak} MB are held, of {PEAK} allowed", (), raw)
        self.peak = max(self.peak, found.peak)

    def _add(self, name: str, error: str, message: str, where: tuple[str, ...], raw: bytes) -> None:
        kind = (name, error, *where[:1])
        self.findings[kind] = self.findings.get(kind, 0) + 1
        if self.findings[kind] > 1:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        path = self.keep / f"{len(self.findings):02} {name.replace('/', ' ')}"
        path.write_bytes(raw)
        print(f"FINDING: {name}: {error}: {message!a}\n  at {' < '.join(where)}\n  {path}", flush=True)

    def run(self, readers: dict[str, Reader], seconds: float, seed: int) -> None:
        """Feed all readers until the time is up."""
        bound_memory()
        chance = Random(seed)
        writers = {name: reader.inputs(reader.seeds, chance) for name, reader in readers.items()}
        names = list(readers)
        weights = [readers[name].weight for name in names]
        with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as folder:
            for name, reader in readers.items():
                for raw in reader.seeds:
                    self.feed(name, reader, Path(folder), raw)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                (name,) = chance.choices(names, weights)
                self.feed(name, readers[name], Path(folder), writers[name].input())

    def report(self) -> None:
        """Print the figures."""
        for name in sorted(self.fed):
            told = f"{self.inputs[name]:>8,} inputs  {self.fed[name]:>12,} bytes  slowest {self.slowest[name]:.2f} s"
            print(f"{name:28}{told}")
        print(f"{self.peak} MB of memory at most, of {PEAK}")
        print(f"{self.fed.total():,} bytes fed in {self.inputs.total():,} inputs: {len(self.findings)} findings")


def replay(readers: dict[str, Reader], path: Path) -> None:
    """Give an input that was kept to its reader again; whatever it raises is not caught."""
    name = path.name.partition(" ")[2]
    bound_memory()
    with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as folder:
        reader = readers[name]
        try:
            reader.read(Path(folder), path.read_bytes())
        except reader.documented as error:
            print(f"{type(error).__name__}: {error}")
