"""What is known of the recordings of a library, kept between starts.

One small database in the state folder: for each file the stamp that it had (time of change, size, number on
the disk) and what its list shows. It is a cache: lost, damaged or locked, it is made anew from the files.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from drivers.base.state import state_folder

NAME = "library.sqlite"
VERSION = 2  # of what is kept for a file
PATIENCE = 2.0  # s to wait for another process that writes
_TABLE = """create table if not exists recordings (
    version integer, folder text, name text, stamp text, content text, low blob, high blob,
    primary key (folder, name)
)"""

Known = dict[str, tuple[str, dict[str, Any]]]  # stamp and fields by file name


def load(folder: Path) -> Known:
    """What is known of the files of a folder."""
    query = "select name, stamp, content, low, high from recordings where folder = ? and version = ?"
    try:
        with _opened() as base:
            rows = [] if base is None else base.execute(query, (str(folder), VERSION)).fetchall()
            return {name: (stamp, _fields(content, low, high)) for name, stamp, content, low, high in rows}
    except (sqlite3.Error, ValueError, TypeError):
        forget()
        return {}


def store(folder: Path, found: Iterable[tuple[str, str, Mapping[str, Any]]]) -> None:
    """Keep name, stamp and fields of files; what cannot be kept is read again next time."""
    rows = []
    for name, stamp, fields in found:
        content = json.dumps({k: v for k, v in fields.items() if k not in ("low", "high")})
        low, high = (np.asarray(fields[k], np.float32).tobytes() for k in ("low", "high"))
        rows.append((VERSION, str(folder), name, stamp, content, low, high))
    with contextlib.suppress(sqlite3.Error), _opened() as base:
        if base is not None:
            base.executemany("insert or replace into recordings values (?, ?, ?, ?, ?, ?, ?)", rows)
            base.commit()


def forget() -> None:
    """Remove the database."""
    if (folder := state_folder()) is not None:
        with contextlib.suppress(OSError):
            (folder / NAME).unlink(missing_ok=True)


@contextlib.contextmanager
def _opened() -> Iterator[sqlite3.Connection | None]:
    folder = state_folder()
    if folder is None:
        yield None
        return
    base = sqlite3.connect(folder / NAME, timeout=PATIENCE)
    try:
        base.execute(_TABLE)
        yield base
    finally:
        base.close()


def _fields(content: str, low: bytes, high: bytes) -> dict[str, Any]:
    fields = json.loads(content)
    if not isinstance(fields, dict):
        raise ValueError("not the fields of a recording")
    arrays = {k: np.frombuffer(v, np.float32).astype(np.float64) for k, v in (("low", low), ("high", high))}
    return {**fields, **arrays}
