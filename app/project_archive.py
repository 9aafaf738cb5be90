"""A project as one file, and back: a zip archive that anybody can open.

Whoever opens an archive does not know who made it: nothing in it can write outside the new folder, be a link,
or fill the disk, and a damaged archive leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from analysis import DataError, Progress, ShakedownError
from app import project as projects
from app.project import Project
from drivers.base.files import open_regular, replaced

MOST_FILES = 100_000
SMALL = 1 << 30  # bytes that are unpacked whatever the archive's own size
MOST_TIMES = 300  # a larger archive may unpack to so many times its size
KEPT_FREE = 256 << 20  # bytes of the disk that stay free
PIECE = 1 << 20  # bytes
UNFINISHED = (".journal", ".part", ".lock")  # being written: no file of the project yet


def archive(project: Project, target: Path, progress: Progress) -> list[Path]:
    """Write the project into one file; what was left out (recordings under way, links), by its path."""
    chosen: list[Path] = []
    left_out: list[Path] = []
    for path in _walk(project.folder):
        if path.name.startswith(".") or path.resolve() == target.resolve():
            continue
        unfit = path.name.endswith(UNFINISHED) or path.is_symlink() or not path.is_file()
        (left_out if unfit else chosen).append(path)
    total = sum(path.stat().st_size for path in chosen) or 1
    done = 0
    with (
        replaced(target) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as out,
    ):
        for path in chosen:
            progress.report(done / total, f"Packing {path.name}")
            info = zipfile.ZipInfo.from_file(
                path, path.relative_to(project.folder).as_posix(), strict_timestamps=False
            )
            info.compress_type = zipfile.ZIP_DEFLATED
            with open_regular(path) as file, out.open(info, "w", force_zip64=True) as packed:
                while piece := file.read(PIECE):
                    packed.write(piece)
                    done += len(piece)
                    progress.report(min(done / total, 1.0), f"Packing {path.name}")
    return left_out


def unpack(source: Path, folder: Path, progress: Progress) -> Project:
    """The project of an archive in a new folder; refused as a whole if anything in it is not right."""
    folder = folder.expanduser().absolute()
    if os.path.lexists(folder):
        raise DataError(f"{folder} is there already: choose the name of a new folder.")
    if not folder.parent.is_dir():
        raise DataError(f"There is no folder {folder.parent} to unpack into.")
    part = folder.with_name(f".{folder.name[:80]}.{secrets.token_hex(4)}.partial")
    try:
        with _opened(source) as packed:
            entries = _checked(packed, source, folder.parent)
            part.mkdir()
            _extract(packed, entries, part, progress)
        projects.load(part)  # before it gets its name
        part.rename(folder)
    except ShakedownError:
        raise
    except OSError as error:
        raise DataError(f"{source.name} cannot be unpacked: {error.strerror or error}.") from None
    except Exception as error:  # whatever zipfile and four ways of packing stumble over in damaged bytes
        raise DataError(f"{source.name} is damaged or not an archive of a project ({error}).") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return projects.load(folder)


def _walk(folder: Path) -> Iterator[Path]:
    """Files below a folder, links not followed; DataError if it cannot be read."""

    def refuse(error: OSError) -> None:
        raise DataError(f"{folder} cannot be read: {error.strerror or error}.") from None

    for place, names, files in os.walk(folder, onerror=refuse):
        names.sort()
        for name in list(names):
            if (Path(place) / name).is_symlink():
                names.remove(name)
                yield Path(place) / name
        for name in sorted(files):
            yield Path(place) / name


@contextlib.contextmanager
def _opened(source: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(source) as file, zipfile.ZipFile(file) as packed:
        yield packed


def _checked(packed: zipfile.ZipFile, source: Path, place: Path) -> list[zipfile.ZipInfo]:
    """The files of an archive, if every one of them may be unpacked."""
    entries = [info for info in packed.infolist() if not info.is_dir()]
    if projects.NAME not in [info.filename for info in entries]:
        raise DataError(f"{source.name} is no archive of a project: there is no {projects.NAME} in it.")
    if len(entries) > MOST_FILES:
        raise DataError(f"{source.name} holds {len(entries)} files: more than a project has.")
    seen: set[str] = set()
    for info in entries:
        if not _harmless(info) or info.filename.casefold() in seen:
            raise DataError(
                f"{source.name} is not unpacked: {info.filename[:80]!r} in it is no file of a project."
            )
        seen.add(info.filename.casefold())
    total, size = sum(info.file_size for info in entries), source.stat().st_size
    if total > max(SMALL, MOST_TIMES * size):
        raise DataError(f"{source.name} has {size} bytes and claims to hold {total}: it is not unpacked.")
    if total + KEPT_FREE > (free := shutil.disk_usage(place).free):
        raise DataError(
            f"{source.name} needs {total / 1e9:.3g} GB, and {free / 1e9:.3g} GB are free in {place}."
        )
    return entries


def _harmless(info: zipfile.ZipInfo) -> bool:
    """Whether an entry is a plain file below the folder, on every system."""
    mode = stat.S_IFMT(info.external_attr >> 16)
    path = PurePosixPath(info.filename)
    odd = any(
        part in ("", ".", "..") or part != part.strip() or part.endswith(".")
        for part in info.filename.split("/")
    )
    characters = any(ord(c) < 32 or c in '\\:*?"<>|' for c in info.filename)
    return mode in (0, stat.S_IFREG) and not path.is_absolute() and not odd and not characters


def _extract(
    packed: zipfile.ZipFile, entries: list[zipfile.ZipInfo], folder: Path, progress: Progress
) -> None:
    total = sum(info.file_size for info in entries) or 1
    done = 0
    for info in entries:
        target = folder / info.filename
        target.parent.mkdir(parents=True, exist_ok=True)
        left = info.file_size
        with packed.open(info) as file, target.open("xb") as out:
            while piece := file.read(PIECE):
                left -= len(piece)
                if left < 0:  # more than it claims
                    raise zipfile.BadZipFile(f"{info.filename} is larger than it says")
                out.write(piece)
                done += len(piece)
                progress.report(min(done / total, 1.0), f"Unpacking {target.name}")
