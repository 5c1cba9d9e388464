"""A disk that is too small for what is written to it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass
class SmallDisk:
    """A file system in memory of so many KB; only root may mount one."""

    folder: Path
    size: int

    def mount(self) -> None:
        """Mount it."""
        self.folder.mkdir()
        self._mount(f"size={self.size}k,mode=700")

    def enlarge(self) -> None:
        """Make room for all that is to come."""
        self._mount("remount,size=64m")

    @property
    def is_full(self) -> bool:
        """Whether not even a page of a database finds room."""
        place = os.statvfs(self.folder)
        return place.f_bavail * place.f_frsize < 64 * 1024

    def unmount(self) -> None:
        """Take it away."""
        subprocess.run(["umount", self.folder], check=True)

    def _mount(self, options: str) -> None:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        if subprocess.run(command, check=False).returncode:
            raise SystemExit("a disk that fills up is mounted as root alone")
