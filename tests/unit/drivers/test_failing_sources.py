"""Sources that fail, hang, or count as they like: what the rig's process and the check say of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base import plugins
from drivers.acquisition import stall
from drivers.acquisition.capture import recording_to
from drivers.acquisition.counting import StreamCounter
from drivers.acquisition.engine import Engine
from drivers.acquisition.messages import Links, Record, StreamEnded
from drivers.acquisition.server import RigServer
from drivers.base.contract import broken_promises
from drivers.base.drive_page import DrivePage, StreamCounts
from drivers.base.latch import Latch
from drivers.base.protocols import Block, ChannelInfo, DriveState, InstrumentError, Samples
from drivers.formats import open_lazily
from drivers.rig.profile import Rig, load_rig
from tests.waiting import GUARD, wait_until

BLAMED = "The driver 'box' of the package shakedown-box"


class Box:
    """A source whose ``read`` does as it is told."""

    name, rate, waits = "box", 1000.0, False
    channels = (ChannelInfo("x", "mm"),)

    def __init__(self, read: Callable[[Samples], Block], start: Callable[[], None] = lambda: None) -> None:
        self._read, self._start = read, start
        self._running = False
        self.stopped = threading.Event()

    def start(self) -> None:
        self._running = True
        self._start()

    def read(self, into: Samples) -> Block:
        if not self._running:
            raise InstrumentError("The box is not running.")
        return self._read(into)

    def stop(self) -> None:
        self._running = False
        self.stopped.set()

    def close(self) -> None:
        self.stop()


def garbage(into: Samples) -> Block:
    raise InstrumentError("The box sent 17 bytes that are no packet.")


def wrong(*given: object) -> Any:
    raise ValueError("cannot reshape array")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Box], Any]]:
    """A rig's server with a source of another package, in this process."""
    about = SimpleNamespace(metadata={"Name": "shakedown-box", "Summary": ""})
    entry = EntryPoint("box", "box:open", "shakedown.sources")._for(about)  # type: ignore[attr-defined]
    found = {group: (entry,) if group == "sources" else () for group in plugins.GROUPS}
    monkeypatch.setattr(plugins, "_found", lambda: found)
    page = DrivePage.create(tmp_path / "a.drive", {"rig": "box"})
    profile = replace(load_rig("two_well_beam"), instruments={"source": {"driver": "box"}})
    servers: list[RigServer] = []

    def serve(box: Box) -> Any:
        control, data = Pipe(), Pipe()
        server = RigServer(profile, Links(control[1], data[1], page.path), page, 0, None)
        server._rig, server._block = Rig(profile, box), 10
        server._stall = stall.Stall(0.01)
        threading.Thread(target=server._send_blocks, daemon=True).start()
        threading.Thread(target=server._tell_drive, daemon=True).start()
        servers.append(server)
        return SimpleNamespace(server=server, received=data[0])

    yield serve
    for server in servers:
        server._stop_stream()
        server.over.set()
    page.close()


def order(path: Path, box: Box) -> Record:
    return Record(recording_to(path, box, {}), None, None, 1)


def test_given_a_source_that_fails_at_once_then_its_own_sentence_refuses_the_recording(
    served: Callable[[Box], Any], tmp_path: Path
) -> None:
    box = Box(garbage)
    server = served(box).server
    server._start()
    wait_until(lambda: not server._reading.is_set())
    with pytest.raises(InstrumentError, match="17 bytes"):
        server._record(order(tmp_path / "run", box))
    engine = Engine(Box(garbage))
    engine.start()
    wait_until(lambda: not engine.status.running)
    with pytest.raises(InstrumentError, match="17 bytes"):
        engine.record(recording_to(tmp_path / "run", box, {}))


def test_given_a_recording_asked_for_while_the_source_ends_then_it_ends_with_the_cause(
    served: Callable[[Box], Any], tmp_path: Path
) -> None:
    box = Box(garbage)
    served_box = served(box)
    server, asked = served_box.server, threading.Event()

    def stop() -> None:  # slow: between the failure and the end of the stream
        assert asked.wait(GUARD)

    box.stop = stop  # type: ignore[method-assign]
    server._start()
    wait_until(lambda: server._failure)
    server._record(order(tmp_path / "run", box))
    asked.set()
    assert server._capture.wait(GUARD) and "17 bytes" in server._capture.failed


def test_given_a_foreign_exception_then_the_package_is_named(served: Callable[[Box], Any]) -> None:
    with pytest.raises(InstrumentError, match=f"{BLAMED} failed .ValueError: cannot reshape array"):
        served(Box(garbage, start=wrong)).server._start()
    reading = served(Box(wrong))
    reading.server._start()
    assert reading.received.poll(GUARD)
    ended = reading.received.recv()
    assert isinstance(ended, StreamEnded) and ended.failure.startswith(f"{BLAMED} failed (ValueError")


def test_given_a_source_that_hangs_then_it_is_said_and_noted_in_the_recording(
    served: Callable[[Box], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "SILENT_SECONDS", 0.3)
    box = Box(lambda into: Block(0, into))
    recorded, index = threading.Event(), 0

    def read(into: Samples) -> Block:
        nonlocal index
        if index == 50:
            recorded.set()
            box.stopped.wait(GUARD)  # waits until it is stopped, as it should
            raise InstrumentError("The box was stopped.")
        into[:] = 1.0
        index += into.shape[1]
        return Block(index - into.shape[1], into)

    box._read = read
    hung = served(box)
    box.stopped.clear()
    server = hung.server
    server._reading.set()  # the recording begins with the first sample
    server._counter = StreamCounter(box)
    server._record(order(tmp_path / "run", box))
    server._start()
    assert recorded.wait(GUARD)
    ended = None
    while not isinstance(ended, StreamEnded):
        assert hung.received.poll(GUARD)
        ended = hung.received.recv()
    assert ended.failure == f"{BLAMED} has given no samples for 0 s: the acquisition was ended."
    assert server._capture.wait(GUARD)
    with open_lazily(server._capture.finished[0].path) as recording:
        assert len(recording) == 50
        assert any(e["text"].startswith(f"recording ended early: {BLAMED}") for e in recording.about.events)
    assert box.stopped.wait(GUARD) and not hung.received.poll(0.1)  # its end is told once


class Drive:
    """An exciter that plays until it is told to stop."""

    unit = "V"

    def __init__(self) -> None:
        self.latch = Latch()
        self.reasons: list[str] = []

    def request_stop(self, reason: str) -> None:
        self.reasons.append(reason)

    def state(self) -> DriveState:
        return DriveState(0, not self.reasons, "sine", 5.0, 1.5, 1.0)


def test_given_a_source_that_hangs_while_the_drive_plays_then_the_drive_is_tripped(
    served: Callable[[Box], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "SILENT_SECONDS", 0.3)
    box, index = Box(garbage), 0

    def read(into: Samples) -> Block:
        nonlocal index
        if index == 50:
            box.stopped.wait(GUARD)
            raise InstrumentError("The box was stopped.")
        into[:] = 1.0
        index += into.shape[1]
        return Block(index - into.shape[1], into)

    box._read = read
    server, drive = served(box).server, Drive()
    server._exciter = drive
    server._publish()
    assert server._page.output == 1.5 and not drive.reasons
    server._start()
    assert box.stopped.wait(GUARD)
    said = f"{BLAMED} has given no samples for 0 s: the acquisition was ended."
    assert drive.reasons == [said] and drive.latch.reason == said
    wait_until(lambda: server._page.output == 0.0)
    status = server._page.status
    assert status.latched and status.state == "tripped" and status.reason == said
    _, stop = server._latest_stop
    assert (stop.kind, stop.sample) == ("trip", 50)  # the recording knows where


def test_given_a_process_that_was_frozen_then_its_source_has_not_hung() -> None:
    watch, counts = stall.Stall(0.01), StreamCounts()
    assert not watch.noticed(counts, 100.0)
    assert not watch.noticed(counts, 4000.0)
    looks = [watch.noticed(counts, 4000.0 + 0.01 * i) for i in range(1, 1100)]
    assert not looks[900] and looks[-1]
    assert not watch.noticed(StreamCounts(1), 4011.0)


def test_given_a_counter_that_does_not_begin_at_zero_then_nothing_was_lost_before_its_first_sample() -> None:
    counter = StreamCounter(Box(garbage))
    for first in (104_009, 104_019, 104_036):
        counter.count(Block(first, np.zeros((1, 10))))
    assert (counter.counts.gaps, counter.counts.lost, counter.counts.samples) == (1, 7, 30)


def test_given_a_source_that_breaks_one_promise_often_then_it_is_said_once() -> None:
    index = 0

    def own_array(into: Samples) -> Block:
        nonlocal index
        index += into.shape[1]
        return Block(index - into.shape[1], np.ones(into.shape))

    def restart() -> None:
        nonlocal index
        index = 0

    assert broken_promises(Box(own_array, restart)) == [
        "After the first start: its block is no view of the array that it was given to fill."
    ]


def test_given_a_source_that_raises_what_it_may_not_then_the_check_says_so() -> None:
    (said,) = broken_promises(Box(wrong))
    assert said.startswith("It raised ValueError (cannot reshape array) in test_failing_sources.py")
    (said,) = broken_promises(Box(garbage, start=wrong))
    assert "raises InstrumentError" in said
