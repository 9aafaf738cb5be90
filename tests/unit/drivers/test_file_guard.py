"""The process that opens files first."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

# The helper's own loop, with a reader that never comes back: its owner is gone and cannot end it.
ABANDONED = """
from drivers.formats import guard, hdf5
def touch(path):
    while True:
        pass
hdf5.touch = touch
guard.PROCESSOR_SECONDS = 0.1
guard.main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="has no timer of processor time")
def test_given_its_owner_was_killed_when_a_file_never_opens_then_the_helper_ends_by_itself() -> None:
    run = subprocess.run(
        [sys.executable, "-c", ABANDONED],
        input='["hdf5", "damaged.h5"]\n',
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert run.returncode == -signal.SIGPROF
