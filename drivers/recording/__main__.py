"""`python -m drivers.recording JOURNAL`: finish one journal; progress and result as lines on stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from analysis import ShakedownError
from drivers.base.logs import begin_log
from drivers.base.system import set_priority
from drivers.recording.finishing import finish_here


def main(path: Path) -> int:
    begin_log("finishing")
    set_priority(0)  # not the rig's own
    try:
        finished = finish_here(path)
    except (ShakedownError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    # As JSON it is ASCII: not every system's pipes carry every name.
    sys.stdout.write(f"finished\t{finished.samples}\t{json.dumps(str(finished.path))}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
