"""Files of the user: the one place that opens them for reading, and the one that puts a new one in place.

Only regular files are opened: a named pipe would block, a device may do anything. A file that claims
gigabytes of which nothing is on the disk is refused before it is read.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from analysis import DataError
from drivers.base import system

LARGEST_TEXT = 256 << 20  # bytes of a text that is read whole: results, models, profiles
HARMLESS_HOLES = 64 << 20  # bytes of holes that are read in no time
MOST_HOLES = 0.9  # share of a file that may be holes; files of silence, copied sparsely, have some
MOST_STRETCHES = 1000  # of data that are counted before a file is taken for full

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
_FLAGS = ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")


def open_regular(path: Path | str) -> BufferedReader:
    """A regular file for reading, without ever waiting; DataError in one sentence for all else."""
    flags = os.O_RDONLY
    for name in _FLAGS:
        flags |= getattr(os, name, 0)
    try:
        place = system.long_path(Path(path))
        _check_regular(path, place.stat())
        handle = os.open(place, flags)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    file = os.fdopen(handle, "rb")
    try:
        _check_regular(path, os.fstat(handle))  # again: it may have been exchanged meanwhile
        _check_filled(path, handle)
    except BaseException:
        file.close()
        raise
    return file


def open_text(path: Path | str) -> TextIOWrapper:
    """A regular file as text, whatever its bytes are, to be read line by line."""
    return TextIOWrapper(open_regular(path), encoding="utf-8", errors="replace")


def decoded(line: bytes) -> str:
    """UTF-8, or else the Western code page in which older instruments write µ, ² and °."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")


def check_regular(path: Path | str) -> None:
    """DataError unless the path is a regular file that can be opened; for readers that open it themselves."""
    open_regular(path).close()


def read_text(path: Path | str, what: str) -> str:
    """The text of a small file in UTF-8; ``what`` it should be, for the sentence if it is none."""
    with open_regular(path) as file:
        try:
            content = file.read(LARGEST_TEXT + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
    if len(content) > LARGEST_TEXT:
        raise DataError(f"{Path(path).name} is too large for {what}.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise DataError(f"{Path(path).name} is not a text file, so not {what}.") from None


@contextlib.contextmanager
def replaced(path: Path | str) -> Iterator[Path]:
    """A name to write to, which takes the place of ``path`` when all went well; else nothing changes.

    A symbolic link stays one: what it points to is replaced.
    """
    target = system.long_path(Path(os.path.realpath(path)))
    partial = target.with_name(f".{target.stem[:80]}.{secrets.token_hex(4)}.partial{target.suffix}")
    try:
        yield partial
        with partial.open("rb+") as file:  # Windows flushes no file that is open for reading only
            os.fsync(file.fileno())
        system.replace(partial, target)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}.") from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def _check_regular(path: Path | str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise DataError(f"{path} cannot be read: it is {kind}, not a file.")


def _check_filled(path: Path | str, handle: int) -> None:
    """Refuse a file that is nearly all holes: reading them takes hours and gives nothing."""
    size = os.fstat(handle).st_size
    if size <= HARMLESS_HOLES or sys.platform == "win32" or not hasattr(os, "SEEK_DATA"):
        return
    stored, position = 0, 0
    try:
        for _ in range(MOST_STRETCHES):
            start = os.lseek(handle, position, os.SEEK_DATA)
            position = os.lseek(handle, start, os.SEEK_HOLE)
            stored += position - start
            if size - stored <= HARMLESS_HOLES:
                break
        else:
            stored = size
    except OSError:  # no more data behind this position, or a file system that knows no holes
        stored = stored if position or stored else _allocated(handle)
    finally:
        os.lseek(handle, 0, os.SEEK_SET)
    if size - stored > max(HARMLESS_HOLES, MOST_HOLES * size):
        raise DataError(
            f"{Path(path).name} claims {size} bytes of which only {stored} are on the disk: it is damaged."
        )


def _allocated(handle: int) -> int:
    status = os.fstat(handle)
    return getattr(status, "st_blocks", status.st_size) * 512


def _unreadable(path: Path | str, error: OSError | ValueError) -> DataError:
    if isinstance(error, ValueError):
        return DataError(f"{str(path)!r} is not the name of a file.")
    return DataError(f"{path} cannot be read: {error.strerror or error}.")
