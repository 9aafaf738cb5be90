"""`python -m drivers.recording JOURNAL`: finish one journal; the result as "path TAB samples" on stdout."""

from __future__ import annotations

import sys
from pathlib import Path

from analysis.errors import ShakedownError
from drivers.recording.recovery import recover_here


def main(path: Path) -> int:
    try:
        finished = recover_here(path)
    except ShakedownError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if finished.problem is not None:
        sys.stderr.write(f"{finished.problem}\n")
        return 1
    sys.stdout.write(f"{finished.path}\t{finished.samples}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
