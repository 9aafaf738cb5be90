"""`python -m drivers.recording JOURNAL`: finish one journal; progress and result as lines on stdout."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from analysis import ShakedownError
from drivers.recording.finishing import finish_here


def main(path: Path) -> int:
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, max(0, os.getpriority(os.PRIO_PROCESS, 0)))  # not the rig's own
    try:
        finished = finish_here(path)
    except (ShakedownError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"finished\t{finished.samples}\t{finished.path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
