"""Compression of long bodies, part by part: gzip, or zstd, which is faster (RFC 9110, 8.4.1; RFC 8878)."""

from __future__ import annotations

import importlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final

from domain.odata.metadata.model_documents import accepts_coding
from domain.table_api.formats.written import Written

_GZIP_LEVEL: Final = 1
_GZIP_WINDOW: Final = 31  # with a header


def coding_for(accepted: str) -> str:
    """The content coding for a value of Accept-Encoding; "" for none."""
    return next((coding for coding in ("zstd", "gzip") if accepts_coding(coding, accepted)), "")


def compressed(parts: Iterable[bytes], coding: str) -> Iterator[bytes]:
    """The parts in the coding. A truncated body lacks the end of its stream, which decoders of both codings detect."""
    return _gzip(parts) if coding == "gzip" else _zstd(parts)


def _gzip(parts: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    for part in parts:
        if made := compressor.compress(part):
            yield made
    yield compressor.flush()


def _zstd(parts: Iterable[bytes]) -> Iterator[bytes]:
    # zstd comes with pyarrow, which is imported on demand, as in formats.columnar.
    pa: Any = importlib.import_module("pyarrow")
    file = Written()
    out = pa.CompressedOutputStream(pa.PythonFile(file, mode="w"), "zstd")
    for part in parts:
        out.write(part)
        if made := file.take():
            yield made
    out.close()
    yield file.take()
