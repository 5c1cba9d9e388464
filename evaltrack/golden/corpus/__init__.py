"""Re-exports the reader of a folder of pages as chunks with stable ids, and its chunkers.

A page is a `.md`, `.rst`, `.txt`, `.html` or `.htm` file. Its id is the file's path without the suffix
(`guides/schengen-visa`). A chunker (`evaltrack.golden.corpus.chunkers`) splits a page into chunks; by default each
heading starts one (`guides/schengen-visa#overstay`).
"""

from evaltrack.golden.corpus.chunkers import Chunk, Chunker, by_page, parse_chunker
from evaltrack.golden.corpus.folder import READERS, domain_folders, parse_suffixes, read_corpus

__all__ = ["READERS", "Chunk", "Chunker", "by_page", "domain_folders", "parse_chunker", "parse_suffixes", "read_corpus"]
