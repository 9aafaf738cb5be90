"""The bench of a control loop over a pipe: the same rig at its far end, and a drive that always ends."""

from __future__ import annotations

import os
import struct
import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from analysis import Cancelled
from analysis.holding.dither import Dither
from app import loop_pipe
from app.loop_bench import RigBench
from app.loop_pipe import BenchServer, PipeBench
from app.loop_rig import with_loop_channels
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.metadata import recording_metadata
from drivers.base.clock import InstantClock
from drivers.base.protocols import ActiveRecording, InstrumentError
from drivers.formats import read
from drivers.rig.profile import Rig, load_rig, open_rig
from tests.waiting import wait_until

PUSHES = np.array([0.2, -0.2, 0.1])  # V


class _Served:
    """A virtual rig, faster than time, behind a pipe."""

    def __init__(self, out: Path) -> None:
        self.rig: Rig = open_rig(with_loop_channels(load_rig("two_well_beam")), InstantClock(), 3)
        self.engine = Engine(self.rig.source, self.rig.exciter, 0.25)
        self._out = out
        self.cancelled, self.stuck = threading.Event(), threading.Event()
        self.news: list[object] = []
        self.ours, self.theirs = Pipe()
        self.bench = RigBench(self.rig, self.engine, self._record, lambda: None)
        self.thread: threading.Thread | None = None

    def _record(self) -> ActiveRecording:
        metadata = recording_metadata(self.rig.source, self.rig.profile)
        return self.engine.record(recording_to(self._out, self.rig.source, metadata))

    def serve(self, longest: float = 60.0) -> PipeBench:
        server = BenchServer(
            self.ours, self.bench, self.cancelled.is_set, self.news.append, lambda: None, longest,
            stuck=self.stuck.set,
        )  # fmt: skip
        self.thread = threading.Thread(target=server.run, daemon=True)
        self.thread.start()
        return PipeBench(self.theirs)

    @property
    def driving(self) -> bool:
        return self.rig.drive_status().driving

    def close(self) -> None:
        self.theirs.close()
        if self.thread is not None:
            self.thread.join(20)
        self.ours.close()
        self.engine.stop()
        self.rig.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[_Served]:
    made = _Served(tmp_path / "looped.h5")
    yield made
    made.close()


def test_given_a_bench_at_the_far_end_when_used_then_the_loop_acts_and_the_recording_holds_it(
    served: _Served, tmp_path: Path
) -> None:
    far = served.serve()
    far.begin(("x", "f"), 7.5)
    far.record()
    far.drive()
    assert served.driving
    far.install(Dither(("x",), PUSHES))
    far.seconds(0.5)
    stretch = far.seconds(1.0)
    assert stretch.samples.shape == (2, 188)  # at 187.5 samples a second
    steps = np.unique(stretch.command)  # what a converter of 16 bits made of the three, and nothing else
    assert [min(abs(steps - push)) < 1e-3 for push in PUSHES] == [True] * 3
    assert far.status().ticks > 200
    far.tell("half way")
    assert served.news == ["half way"]
    far.let_go("enough")
    assert far.end("the test is over") == [str(tmp_path / "looped.h5")]
    assert not served.driving
    record = read(str(tmp_path / "looped.h5"))
    assert np.abs(record["correction"]).max() == pytest.approx(0.2, abs=1e-3)
    assert record.metadata["drive"]["amplitude"] == 1.5


def test_given_a_far_end_that_dies_then_the_drive_ends_and_the_recording_is_whole(
    served: _Served, tmp_path: Path
) -> None:
    far = served.serve()
    far.begin(("x", "f"), 7.5)
    far.record()
    far.drive()
    served.theirs.close()
    assert served.thread is not None
    served.thread.join(20)
    assert not served.thread.is_alive() and not served.driving
    assert read(str(tmp_path / "looped.h5")).duration > 0.5


def test_given_a_far_end_that_hangs_then_the_drive_ends_and_it_is_told_why(served: _Served) -> None:
    far = served.serve(longest=0.2)
    far.begin(("x", "f"), 7.5)
    far.drive()
    wait_until(lambda: not served.driving)
    with pytest.raises(InstrumentError, match=r"took more than 0\.2 s"):
        far.seconds(0.1)
    assert not served.driving


@pytest.mark.parametrize("suspended", ["while it takes an answer", "while it asks"])
def test_given_a_far_end_that_is_suspended_within_a_message_then_the_drive_ends(
    served: _Served, suspended: str
) -> None:
    far = served.serve(longest=0.5)
    far.begin(("x", "f"), 7.5)
    far.drive()
    if suspended == "while it asks":
        os.write(served.theirs.fileno(), struct.pack("!i", 1000) + b"half of it")
    else:
        served.theirs.send(("seconds", (200.0,)))  # more than the pipe holds; nobody takes it
    wait_until(lambda: not served.driving)


def test_when_cancelled_while_the_far_end_computes_then_the_drive_ends_without_it(
    served: _Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_pipe, "CANCEL_SECONDS", 0.1)
    monkeypatch.setattr(loop_pipe, "STUCK_SECONDS", 0.3)
    far = served.serve()
    far.begin(("x", "f"), 7.5)
    far.drive()
    served.cancelled.set()
    wait_until(lambda: not served.driving)
    assert not served.stuck.is_set()
    wait_until(served.stuck.is_set)
    with pytest.raises(Cancelled):
        far.seconds(0.1)


def test_given_nothing_asked_of_the_rig_yet_then_a_long_computation_is_no_hang(served: _Served) -> None:
    far = served.serve(longest=0.1)
    time.sleep(0.4)
    far.begin(("x", "f"), 7.5)


def test_when_cancelled_then_the_far_end_hears_it_and_can_still_end(served: _Served) -> None:
    far = served.serve()
    far.begin(("x", "f"), 7.5)
    far.drive()
    served.cancelled.set()
    with pytest.raises(Cancelled):
        far.seconds(1.0)
    assert far.end("cancelled") == []
    assert not served.driving


def test_when_the_window_is_gone_then_one_sentence() -> None:
    ours: Connection
    ours, theirs = Pipe()
    ours.close()
    with pytest.raises(InstrumentError, match="is gone: the drive is off"):
        PipeBench(theirs).status()
