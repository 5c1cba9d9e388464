"""What a target and a judge have in common whose function runs in processes of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaltrack.records.roles import Closable

if TYPE_CHECKING:
    from evaltrack.targets.child.pool import Pool


class InProcesses(Closable):
    """Owns the processes of a function, and closes them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    @property
    def notes(self) -> list[str]:
        """How often a process ended."""
        return self._pool.notes

    async def aclose(self) -> None:
        """Let the processes end."""
        await self._pool.aclose()

    def close(self) -> None:
        """End processes that were never called."""
        self._pool.close()
