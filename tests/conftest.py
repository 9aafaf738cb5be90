"""Shared fixtures. Random draws come from a seeded generator; kernels are cached once for all tests."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# The same examples each time and no limits of time: what failed can be repeated, whatever the machine.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")


def _own_display() -> None:
    """Windows of test processes take the keyboard from each other: each process has a display of its own."""
    server = shutil.which("Xvfb")
    if not (os.environ.get("PYTEST_XDIST_WORKER") and os.environ.get("DISPLAY") and server):
        return
    told, tell = os.pipe()
    screen = ["-screen", "0", "1920x1080x24", "-nolisten", "tcp"]
    running = subprocess.Popen(
        [server, "-displayfd", str(tell), *screen], pass_fds=[tell], stderr=subprocess.DEVNULL
    )
    os.close(tell)
    with os.fdopen(told) as answer:
        number = answer.readline().strip()  # the whole line: a server that cannot write its end dies of it
    if number:
        os.environ["DISPLAY"] = f":{number}"
        atexit.register(running.terminate)


_own_display()
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # of a shell that runs us in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # programs that tests start must hear Ctrl-C


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20260501)


@pytest.fixture(scope="session", autouse=True)
def own_control_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """With a control folder of its own no test process stops the drives of another one, nor those of a
    program in use on this machine."""
    yield from _in_control_folder(tmp_path_factory)


@pytest.fixture(scope="module", autouse=True)
def control_folder_of_the_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A drive whose device is gone stays on record until the amplifier is off: not for the next tests."""
    yield from _in_control_folder(tmp_path_factory)


def _in_control_folder(folders: pytest.TempPathFactory) -> Iterator[None]:
    before = os.environ.get("SHAKEDOWN_CONTROL_FOLDER")
    folder = folders.mktemp("control")
    folder.chmod(0o700)
    os.environ["SHAKEDOWN_CONTROL_FOLDER"] = str(folder)
    yield
    if before is None:
        del os.environ["SHAKEDOWN_CONTROL_FOLDER"]
    else:
        os.environ["SHAKEDOWN_CONTROL_FOLDER"] = before
