"""Shared files as the objects of a store that pyarrow opens: S3, Google Cloud Storage, Azure.

A store renames nothing, but an object is there whole or not at all. So a file is made on this machine and sent under
its final name. Keys come from the environment, as the libraries of each store read them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ParamSpec, TypeVar, cast

from evaltrack.system.shared_files import Board

if TYPE_CHECKING:
    import pyarrow.fs

PAUSES = (0.5, 2.0)
"""Seconds before a request that failed is made again."""
JOIN_SECONDS = 0.05
"""In which several writes of the same object become one: others see the last one alone."""
LOOK_SECONDS = 1.0
"""Between two looks at the same object: each is a request that is paid for."""


P = ParamSpec("P")
T = TypeVar("T")


def _patiently(method: Callable[P, T]) -> Callable[P, T]:
    """Make a request again that failed, after the tries of the store's own library; a missing object is no failure."""

    @wraps(method)
    def tried(*arguments: P.args, **named: P.kwargs) -> T:
        for pause in PAUSES:
            try:
                return method(*arguments, **named)
            except FileNotFoundError:
                raise
            except OSError:
                time.sleep(pause)
        return method(*arguments, **named)

    return tried


class StoreFiles:
    """The objects below one prefix, by its URI."""

    look_seconds = LOOK_SECONDS

    def __init__(self, place: str) -> None:
        self.place = place
        self.name = place.partition("?")[0].rpartition("/")[2]

    def _opened(self) -> tuple[pyarrow.fs.FileSystem, str]:
        """The store, and bucket and prefix in it."""
        import pyarrow as pa

        try:
            return _store_of(self.place)
        except pa.ArrowException as error:
            raise OSError(str(error)) from None

    def make(self, setting: str) -> None:  # noqa: ARG002 - who may write to a bucket is known to the store alone
        """Check that the bucket is there; a prefix needs not be made."""
        from pyarrow.fs import FileType

        store, path = self._opened()
        bucket = path.partition("/")[0]
        if store.get_file_info(bucket).type == FileType.NotFound:
            raise FileNotFoundError(f"there is no bucket {bucket}, or it may not be read")

    @contextmanager
    def draft(self, name: str) -> Iterator[Path]:
        """A file in a temporary folder of this machine."""
        with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
            yield Path(folder) / name

    def put(self, draft: Path, name: str) -> None:
        """Send a draft."""
        import pyarrow as pa

        with pa.memory_map(str(draft)) as file:  # one write: a stream that is broken off makes an object of what it has
            self.write(name, file.read_buffer())

    @_patiently
    def read(self, name: str) -> bytes:
        """The content of an object."""
        with self.open(name) as file:
            return file.read()

    @_patiently
    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Some bytes of an object; no others are fetched."""
        with self.open(name) as file:
            file.seek(start)
            return file.read(end - start)

    @_patiently
    def write(self, name: str, content: bytes) -> None:
        """Send an object."""
        store, path = self._opened()
        with store.open_output_stream(f"{path}/{name}") as stream:
            stream.write(content)

    @_patiently
    def open(self, name: str) -> AbstractContextManager[BinaryIO]:
        """An object to read from."""
        store, path = self._opened()
        return cast("AbstractContextManager[BinaryIO]", store.open_input_file(f"{path}/{name}"))

    @_patiently
    def names(self) -> set[str]:
        """The names of all objects, in one request for each thousand."""
        from pyarrow.fs import FileSelector

        store, path = self._opened()
        return {each.base_name for each in store.get_file_info(FileSelector(path, allow_not_found=True))}

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; together, with the prefix, where there are no others."""
        store, path = self._opened()
        unwanted = set(names)
        with suppress(OSError):
            if self.names() <= unwanted:
                store.delete_dir(path)
                return
        for name in unwanted:
            with suppress(OSError):
                store.delete_file(f"{path}/{name}")

    def board(self) -> Board:
        """The objects by a thread that waits for the store."""
        return StoreBoard(self)


class StoreBoard:
    """Small objects, read and written in a thread: a read gives what the thread read last."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="evaltrack-board")
        self._reads: dict[str, tuple[float, Future[None]]] = {}
        self._contents: dict[str, bytes] = {}
        self._unwritten: dict[str, bytes] = {}
        self._num_writes = 0

    def read(self, name: str) -> bytes:
        """What was read last.

        Raises:
            FileNotFoundError: there is no such object, or it was not read yet.
        """
        now = time.monotonic()
        at, last = self._reads.get(name, (0.0, None))
        if last is None or (last.done() and now - at >= LOOK_SECONDS):
            self._reads[name] = now, self._thread.submit(self._read, name, self._num_writes)
        if name not in self._contents:
            raise FileNotFoundError(name)
        return self._contents[name]

    def write(self, name: str, content: bytes) -> None:
        """Write soon; reads give the content from now on."""
        self._num_writes += 1  # a read that is under way brings what was there before
        self._contents[name] = self._unwritten[name] = content
        self._thread.submit(self._write, name)

    def _read(self, name: str, num_writes: int) -> None:
        with suppress(OSError):
            content = self._files.read(name)
            if num_writes == self._num_writes:
                self._contents[name] = content

    def _write(self, name: str) -> None:
        time.sleep(JOIN_SECONDS)
        if content := self._unwritten.pop(name, b""):
            with suppress(OSError):
                self._files.write(name, content)


@cache
def _store_of(place: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The store of a URI, which keeps its connections, and the path in it."""
    from pyarrow.fs import FileSystem

    store, path = FileSystem.from_uri(place)
    return store, path
