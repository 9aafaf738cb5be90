"""The folder in which running drives can be found by their own user, and by nobody else.

It does not depend on TMPDIR: the session's runtime folder, shared memory, or the state folder in the home
directory. The first two are no files on a disk: where a page is one, a disk or a network drive that stalls (a
snapshot, a server that is gone) holds everybody who writes to it, the second guard too. A folder that belongs
to somebody else, that others can write to, or that is a symbolic link is not used.
Standard library only: ``shakedown stop`` starts with it.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

SUFFIX = ".drive"
MEMORY = Path("/dev/shm")  # a folder of ours in it is proven to be ours
OWN = "SHAKEDOWN_CONTROL_FOLDER"  # environment: only this folder, and only its drives (for tests)


def candidates() -> list[Path]:
    """Where the folder may be, the best place first."""
    if own := os.environ.get(OWN):
        return [Path(own)]
    if sys.platform == "win32":  # the profile's own folder has its own access list
        return [Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "Shakedown" / "drives"]
    places = []
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        places.append(Path(runtime) / "shakedown")
    places.append(Path(f"/run/user/{os.getuid()}/shakedown"))
    places.append(MEMORY / f"shakedown-{os.getuid()}")
    try:
        import pwd  # noqa: TID251 (not reached on Windows)

        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = os.environ.get("HOME", "/nonexistent")
    places.append(Path(home) / ".local" / "state" / "shakedown" / "drives")
    return list(dict.fromkeys(places))


def is_private(folder: Path) -> bool:
    """Whether it is a real folder of ours that nobody else can enter."""
    try:
        found = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(found.st_mode):
        return False
    return not hasattr(os, "getuid") or (found.st_uid == os.getuid() and not found.st_mode & 0o077)


def control_folder() -> Path:
    """The folder, made if necessary. A private temporary one where no other place can be used."""
    for folder in candidates():
        if _made(folder):
            return folder
    import tempfile

    return Path(tempfile.mkdtemp(prefix="shakedown-"))  # a new name, mode 0700


def _made(folder: Path) -> bool:
    parent = folder.parent
    try:
        if hasattr(os, "getuid"):
            if parent.name == "shakedown":  # below the home directory
                parent.parent.mkdir(parents=True, exist_ok=True)
                parent.mkdir(mode=0o700, exist_ok=True)
            elif OWN not in os.environ and parent != MEMORY and not is_private(parent):
                return False  # a runtime folder that is not the session's own
        else:
            parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        if hasattr(os, "getuid") and stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
            folder.chmod(0o700)
    except OSError:
        return False
    return is_private(folder)


def page_paths() -> list[Path]:
    """The pages of our own drives, in every place where they may be."""
    found = []
    for folder in candidates():
        if is_private(folder):
            found += sorted(p for p in folder.iterdir() if p.name.endswith(SUFFIX))
    return found


def restricted() -> str:
    """The only folder that is looked at; empty normally, when all drives of the machine are."""
    return os.environ.get(OWN, "")


def new_page_path() -> Path:
    """A name for the page of a drive that is about to start."""
    import secrets

    return control_folder() / f"{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}"
