"""The drive of a generator on its own clock, which no sample tells of."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from pytestqt.qtbot import QtBot

from app.desktop.feed import Feed
from app.desktop.rigdesk import RigDesk
from drivers.base.drive_page import DriveStatus
from drivers.base.limits import Limits
from drivers.base.protocols import Block, ChannelInfo


def test_given_blocks_that_tell_no_drive_then_the_rigs_process_does_and_the_live_display_goes_on(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = DriveStatus("playing", "sine", 10.0, 0.05, 1.0, "V")
    source = SimpleNamespace(channels=(ChannelInfo("x", "V", -1.0, 1.0),), rate=100.0)
    exciter = SimpleNamespace(limits=Limits(1.0), unit="V")
    rig = SimpleNamespace(drive_status=lambda: status)
    desk = RigDesk(lambda: None)  # type: ignore[arg-type, return-value]
    monkeypatch.setattr(desk, "_rig", SimpleNamespace(source=source, exciter=exciter, rig=rig))
    starts = iter(range(0, 1000, 50))
    read = SimpleNamespace(read=lambda: [Block(next(starts), np.zeros((1, 50)))])
    monkeypatch.setattr(desk, "_blocks", read)
    feed = Feed(desk)
    feed.restart()
    feed.advance()
    assert desk.drive().playing and desk.drive().steady and desk.drive().frequency == 10.0
    assert math.isnan(desk.drive().phase) and not feed.phase_known
    assert feed.ring.stop == 50 and feed.section.shape == (1, 0)  # nobody knows when to strobe
    stopped: list[str] = []
    desk.drive_stopped.connect(stopped.append)
    status = DriveStatus("tripped", reason="the line vanished")
    feed.advance()
    assert not desk.drive().playing and stopped == ["the line vanished"]
    feed._timer.stop()
