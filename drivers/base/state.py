"""Where the program keeps what it may lose: indexes of libraries, its log."""

from __future__ import annotations

import os
from pathlib import Path


def state_folder() -> Path | None:
    """The folder, made if it is not there (XDG on Linux, the usual places elsewhere); None if that fails."""
    try:
        if root := os.environ.get("XDG_STATE_HOME"):
            folder = Path(root) / "shakedown"
        elif os.name == "nt":
            folder = Path(os.environ.get("LOCALAPPDATA", Path.home())) / "Shakedown"
        else:
            folder = Path.home() / ".local" / "state" / "shakedown"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # RuntimeError: the user has no home
        return None
    return folder if os.access(folder, os.W_OK) else None
