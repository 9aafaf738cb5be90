"""The watch over a drive: what no test can do for real, such as closing a laptop's lid."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from drivers.acquisition import guard_process
from drivers.acquisition.keeping_awake import KeepAwake
from drivers.acquisition.server import Watch
from drivers.base import system
from drivers.base.drive_page import DrivePage
from tests.waiting import wait_until


class Drive:
    """What the watch sees of the rig's server."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.driving = self.opened = True
        self.window_link_closed = False
        self.stopped: list[tuple[str, str]] = []

    def stop_drive(self, reason: str, kind: str) -> None:
        self.stopped.append((reason, kind))

    def end(self, reason: str) -> None:
        self.stopped.append((reason, "end"))


def test_given_a_computer_that_slept_while_it_drove_then_the_drive_is_stopped_and_the_reason_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = iter([(5.0, 5.0), (4.6, 5.1), (5.0, 5.4), (5.0, 5.0), (3605.0, 3605.0), (3605.0, 3605.0)])
    drive = Drive()

    def asleep() -> tuple[float, float]:
        bounds = next(looks, None)
        if bounds is None:
            drive.over.set()
        return bounds or (3605.0, 3605.0)

    monkeypatch.setattr(system, "seconds_asleep", asleep)
    page = DrivePage.create(tmp_path / "a.drive", {})
    Watch(drive, page, 1.0).run()  # type: ignore[arg-type]
    page.close()
    # A machine so busy that its clocks are read half a second apart has not slept.
    assert drive.stopped == [("the computer slept for 3600.0 s", "trip")]


def test_given_a_machine_that_is_awake_then_it_has_not_slept_between_two_looks() -> None:
    first, second = system.seconds_asleep(), system.seconds_asleep()
    assert first[0] <= first[1] and second[0] - first[1] <= 1e-3


@pytest.mark.skipif(sys.platform == "win32", reason="a program of Linux")
def test_given_a_drive_then_the_computer_is_kept_awake_until_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, held, ended = tmp_path / "systemd-inhibit", tmp_path / "held", tmp_path / "ended"
    program.write_text(f'#!/bin/sh\necho "$@" > {held}.new; mv {held}.new {held}; cat; touch {ended}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    awake = KeepAwake()
    awake.hold(False)
    assert not held.exists()
    awake.hold(True)
    wait_until(held.exists)
    awake.hold(True)
    assert held.read_text().split()[0] == "--what=sleep:handle-lid-switch" and not ended.exists()
    awake.hold(False)
    wait_until(ended.exists)

    def nothing_left_behind() -> bool:
        awake.hold(False)
        return not awake._released

    wait_until(nothing_left_behind)


@pytest.mark.skipif(sys.platform == "win32", reason="a program of Linux")
@pytest.mark.parametrize("answer", [0, 1])
def test_given_systemd_then_the_guard_is_moved_to_a_scope_of_its_own_and_works_if_that_is_refused(
    answer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "asked"
    program = tmp_path / "busctl"
    program.write_text(f'#!/bin/sh\necho "$@" > {asked}.new; mv {asked}.new {asked}; exit {answer}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(guard_process, "BOOTED", tmp_path)
    page = DrivePage.create(tmp_path / "a.drive", {})
    guard = guard_process.GuardProcess(page)
    wait_until(asked.exists)
    words = asked.read_text().split()
    assert words[0] == ("--system" if os.getuid() == 0 else "--user")
    assert words[-8:] == f"shakedown-guard-{page.guard_pid}.scope fail 1 PIDs au 1 {page.guard_pid} 0".split()
    wait_until(lambda: guard._moving is None or guard._moving.poll() is not None)
    guard.keep_alive()
    assert guard._moving is None
    beat = page.guard_beat
    wait_until(lambda: page.guard_beat > beat)
    page.closed = True
    assert guard._process is not None and guard._process.wait(30) == 0
    assert guard._process.stdin is not None
    guard._process.stdin.close()
    page.close()
