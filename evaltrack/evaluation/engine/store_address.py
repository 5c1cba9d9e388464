"""Where a shared folder is: a path, or the URI of a prefix in an object store."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from evaltrack.privacy.names import holds_secret
from evaltrack.system.object_store import StoreFiles
from evaltrack.system.shared_files import FolderFiles, SharedFiles

SETTING = "`engine_folder=`"
FILE = "file"
STORES = ("s3", "gs", "gcs", "abfs", "abfss")
"""The stores that pyarrow opens in which an object is there whole or not at all."""
FORM = "write the path of a shared folder, or s3://BUCKET/PREFIX"
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://.*", re.DOTALL)
OPTIONS = {"region", "scheme", "endpoint_override", "project_id", "blob_storage_authority", "dfs_storage_authority"}
"""What a query may hold: settings of pyarrow's that are no keys."""


def is_uri(folder: str) -> bool:
    """Whether a folder is named by a URI."""
    return _URI.fullmatch(folder) is not None


def problem_of(folder: str) -> str | None:
    """Why a shared folder cannot be what was set; no key that stands in it is quoted."""
    if not is_uri(folder):
        return None
    try:
        parts = urlsplit(folder)
    except ValueError:
        return f"is no URI; {FORM}"
    if _holds_key(folder, parts):
        return "holds a key (not shown here); give keys through the environment, here and on the workers"
    if parts.scheme == FILE:
        return f"a folder is named by its path alone; {FORM}" if parts.netloc or parts.query else None
    if parts.scheme not in STORES:
        return f"{parts.scheme}:// is no object store that can be used ({', '.join(STORES)}); {FORM}"
    return _problem_of_store(parts)


def _holds_key(folder: str, parts: SplitResult) -> bool:
    """Whether a URI holds a key: of Azure a name before the host is a container, of S3 it is the id of a key."""
    user = parts.netloc.rpartition("@")[0]
    return ":" in user or (user != "" and parts.scheme == "s3") or "@" in unquote(parts.query) or holds_secret(folder)


def _problem_of_store(parts: SplitResult) -> str | None:
    names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if others := sorted(names - OPTIONS):
        return f"`{others[0]}` cannot be set in the URI; it takes {', '.join(sorted(OPTIONS))}"
    if not parts.netloc or parts.fragment:
        return f"names no bucket, or has a #; {FORM}"
    return None


def joined(folder: str, name: str) -> str:
    """The URI of what has a name in the folder of another URI."""
    base, sign, query = folder.partition("?")
    return f"{base.rstrip('/')}/{name}{sign}{query}"


def files_at(place: str) -> SharedFiles:
    """The files of a shared folder."""
    if not is_uri(place):
        return FolderFiles(Path(place))
    if urlsplit(place).scheme == FILE:
        return FolderFiles(Path(unquote(urlsplit(place).path)))
    return StoreFiles(place)
