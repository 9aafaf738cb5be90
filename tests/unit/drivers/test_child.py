"""Processes of our own find our packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import drivers
from drivers.base.child import environment


@pytest.mark.skipif(sys.prefix == sys.base_prefix, reason="needs an interpreter where nothing is installed")
def test_given_a_checkout_that_is_not_installed_then_a_process_of_ours_finds_the_packages(
    tmp_path: Path,
) -> None:
    bare = sys._base_executable  # type: ignore[attr-defined]
    command = [bare, "-P", "-c", "import drivers; print(drivers.__file__)"]
    run = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == drivers.__file__
