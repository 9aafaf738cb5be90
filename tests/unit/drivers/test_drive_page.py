"""The page that STOP is written to, where the disk is full or a name is no text."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path

import pytest

from drivers.acquisition import guarded, stopping
from drivers.base.drive_page import DrivePage, DriveStatus
from drivers.base.protocols import InstrumentError


def test_given_a_reason_with_a_file_name_that_is_no_text_then_stop_is_set_all_the_same(
    tmp_path: Path,
) -> None:
    page = DrivePage.create(tmp_path / "a.drive", {})
    reason = "the disk is full: /data/" + os.fsdecode(b"\xff")
    page.request_stop(reason)
    page.publish(DriveStatus("tripped", reason=reason))
    assert page.stop_requested and page.stop_word == page.status.reason == r"the disk is full: /data/\udcff"
    page.close()


@pytest.mark.skipif(sys.platform != "linux", reason="open files of processes are seen in /proc")
def test_given_a_runtime_folder_that_was_removed_at_logout_then_stop_finds_the_page_all_the_same(
    tmp_path: Path,
) -> None:
    page = DrivePage.create(tmp_path / "a.drive", {})
    page.hold_open()
    page.path.unlink()
    path, me = page.path, os.getuid()
    stopping._opened(path, me, os.getpid()).request_stop()
    assert page.stop_requested
    with pytest.raises(ValueError, match="no drive's page of ours"):
        stopping._opened(path, me + 1, os.getpid())
    with pytest.raises(FileNotFoundError):
        stopping._opened(tmp_path / "b.drive", me, os.getpid())


def test_given_a_full_disk_then_the_rig_is_refused_in_a_sentence_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("SHAKEDOWN_CONTROL_FOLDER", str(tmp_path))
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(InstrumentError, match="where STOP finds its drive, cannot be written"):
        guarded._new_page({})
    assert not list(tmp_path.iterdir())


def test_given_a_plan_then_its_name_and_size_are_said_and_no_frequency() -> None:
    assert DriveStatus("playing", "segments", 0.2, 3.2, 1.0, "V").text == "PLAN 3.20 V"
    assert DriveStatus("playing", "sine", 7.5, 1.5, 1.0, "V").text == "SINE 7.5 Hz 1.50 V"
