"""Old-style HDF5 has no checksums on its own tables: a damaged file can make the library loop or crash.

Such files are first opened by a process of their own with a time and memory limit, and only if that went well
by ours. Newer files (superblock version 2 and up, ours among them) are checksummed and need no such care.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from analysis.base.errors import DataError
from drivers.base.child import command, environment

SECONDS = 20.0
MEMORY = 8 << 30  # bytes of address space
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def check_in_subprocess(path: Path) -> None:
    """DataError if opening the file and touching each of its parts fails, crashes or takes too long."""
    version = _superblock_version(path)
    if version is None:
        raise DataError(f"{path.name} is not an HDF5 file, or its beginning is damaged.")
    if version >= 2:
        return
    guarded = command("drivers.formats.guard", str(path))
    try:
        run = subprocess.run(guarded, env=environment(), capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        raise DataError(f"{path.name} is damaged: opening it does not come to an end.") from None
    if run.returncode != 0:
        raise DataError(f"{path.name} is not an HDF5 file, or it is damaged or cut short.")


def _superblock_version(path: Path) -> int | None:
    """None if there is no HDF5 signature where one may be."""
    with path.open("rb") as file:
        for position in (0, 512, 1024, 2048):
            file.seek(position)
            head = file.read(9)
            if head[:8] == SIGNATURE and len(head) == 9:
                return head[8]
    return None


def touch_everything(path: Path) -> None:
    """Walk the whole tree; read attributes and both ends of every dataset."""
    import h5py

    with h5py.File(path, "r") as file:
        pending = [file]
        for _ in range(50_000):
            if not pending:
                return
            item = pending.pop()
            list(item.attrs.items())
            if isinstance(item, h5py.Group):
                links = (key for key in item if isinstance(item.get(key, getlink=True), h5py.HardLink))
                pending += [item[key] for key in links]
            elif isinstance(item, h5py.Dataset) and item.shape and item.dtype.kind in "biuf":
                item[:1], item[-1:]


def main(path: Path) -> int:
    if sys.platform != "win32":
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        if hard == resource.RLIM_INFINITY or hard > MEMORY:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, hard))
    touch_everything(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
