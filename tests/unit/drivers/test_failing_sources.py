"""Sources that fail, hang, or count as they like: what the rig's process and the check say of them."""

from __future__ import annotations

import re
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
from drivers.acquisition.block_reading import read_block
from drivers.acquisition.capture import LOST_AT_END, Capture, recording_to
from drivers.acquisition.counting import StreamCounter
from drivers.acquisition.engine import Engine
from drivers.acquisition.messages import Links, Record, StreamEnded
from drivers.acquisition.server import RigServer
from drivers.base.contract import broken_promises
from drivers.base.drive_page import DrivePage, StreamCounts
from drivers.base.foreign_error import in_words
from drivers.base.latch import Latch
from drivers.base.overload import overloads
from drivers.base.protocols import Block, ChannelInfo, ChannelSpan, DriveState, InstrumentError, Samples
from drivers.base.standstill import LONGEST_LOOK
from drivers.formats import open_lazily
from drivers.rig import registry
from drivers.rig.profile import Rig, load_rig, open_rig
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


def ends(error: BaseException) -> Callable[[Samples], Block]:
    def read(into: Samples) -> Block:
        raise error

    return read


@pytest.mark.parametrize(
    ("read", "words"),
    [
        (lambda into: None, "TypeError: read gave NoneType"),
        (lambda into: Block(0, np.zeros((3, 10))), r"shape \(3, 10\), and \(1, 10\)"),
        (lambda into: Block(0, np.zeros((1, 11))), r"shape \(1, 11\)"),
        (lambda into: Block(0, into.astype(np.float32)), "no array of doubles"),
        (ends(SystemExit(3)), "SystemExit: 3"),
        (ends(KeyboardInterrupt()), "KeyboardInterrupt"),
    ],
)
def test_given_what_is_no_block_while_the_drive_plays_then_it_is_said_and_the_drive_tripped_at_once(
    served: Callable[[Box], Any], read: Callable[[Samples], Block], words: str
) -> None:
    reading, drive = served(Box(read)), Drive()
    reading.server._exciter = drive
    reading.server._publish()
    reading.server._start()
    assert reading.received.poll(GUARD)
    assert re.match(f"{BLAMED} failed .*{words}", reading.received.recv().failure)
    assert re.match(f"{BLAMED} failed .*{words}", drive.latch.reason)


def test_given_a_source_of_empty_blocks_then_it_is_given_up_like_one_that_hangs(
    served: Callable[[Box], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stall, "SILENT_SECONDS", 0.3)
    reading = served(Box(lambda into: Block(0, into[:, :0])))
    reading.server._start()
    assert reading.received.poll(GUARD)
    assert "has given no samples" in reading.received.recv().failure


def test_given_a_source_that_writes_over_its_own_array_then_the_blocks_before_are_kept() -> None:
    own = np.zeros((1, 4))

    def read(into: Samples) -> Block:
        own[:] += 1.0
        return Block(0, own)

    box = Box(read)
    box.start()
    first, second = read_block(box, 4), read_block(box, 4)
    assert first.data.tolist() == [[1.0] * 4] and second.data.tolist() == [[2.0] * 4]


def test_given_a_reason_for_a_gap_that_no_file_takes_then_it_is_one_short_line() -> None:
    box = Box(lambda into: Block(0, into, reason="lost\n\ud800" + "x" * 10**6))
    box.start()
    said = read_block(box, 5).reason
    assert said.startswith("lost ?xx") and len(said) == 300


def test_given_values_that_are_no_numbers_then_they_are_missing_and_hide_no_overload() -> None:
    channels = (ChannelInfo("x", "mm", -1.0, 1.0), ChannelInfo("y", "mm", -1.0, 1.0))
    values = np.array([[0.0, np.nan, np.nan, 5.0, 5.0, np.inf], [0.0, np.nan, 0.0, 0.0, 0.0, 0.0]])

    def read(into: Samples) -> Block:
        into[:] = values
        return Block(100, into, overloads(into, channels, 100), missing=(ChannelSpan(1, 101, 102),))

    box = Box(read)
    box.channels = channels  # type: ignore[assignment]
    box.start()
    block = read_block(box, 6)
    assert block.overloads == (ChannelSpan(0, 103, 106),)
    assert block.missing == (ChannelSpan(1, 101, 102), ChannelSpan(0, 101, 103), ChannelSpan(0, 105, 106))


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        ({"rate": 0.0}, "has the rate 0.0: it must be a float or an int above 0"),
        ({"rate": "1000"}, "has the rate '1000'"),
        ({"rate": np.nan}, "has the rate nan"),
        ({"channels": ()}, "has the channels none; those of the rig are x, f, drive, in this order"),
        ({"channels": ("x", "f", "drive")}, "no tuple of ChannelInfo"),
        ({"order": ("f", "x", "drive")}, "has the channels f, x, drive; those of the rig are x, f, drive"),
        ({"order": ("x", "f", "drive", "x")}, "each once"),
        ({"unit": "furlong"}, "gives channel 'x' in 'furlong'; the rig has it in '"),
    ],
)
def test_given_a_source_that_does_not_fit_its_profile_then_the_rig_is_not_opened_and_the_source_closed(
    monkeypatch: pytest.MonkeyPatch, shown: dict[str, Any], words: str
) -> None:
    profile = load_rig("two_well_beam")
    infos = {c.name: c.info() for c in profile.channels}
    if "unit" in shown:
        infos["x"] = replace(infos["x"], unit=shown["unit"])
    box = Box(garbage)
    box.channels = tuple(infos[name] for name in shown.get("order", infos))  # type: ignore[assignment]
    for name in shown.keys() & {"rate", "channels"}:
        setattr(box, name, shown[name])
    monkeypatch.setattr(registry, "driver", lambda group, name: lambda *given: box)
    with pytest.raises(InstrumentError, match=f"^The driver 'virtual' .*{re.escape(words)}"):
        open_rig(profile)
    assert box.stopped.is_set()


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def test_given_an_exception_without_words_or_with_too_many_then_it_is_told_in_one_line() -> None:
    assert in_words(Wordless()) == "Wordless, which has no text"
    assert in_words(KeyError()) == "KeyError"
    assert in_words(ValueError("a\n b")) == "ValueError: a b"
    assert len(in_words(ValueError("x" * 10**6))) < 400


def test_given_a_source_whose_rate_changes_when_it_starts_or_runs_then_nothing_is_read_at_another(
    served: Callable[[Box], Any],
) -> None:
    def faster() -> None:
        box.rate = 1024.0

    def read(into: Samples) -> Block:
        box.rate = 2048.0
        return Block(0, into)

    words = f"{BLAMED} has changed its rate from 1000 to {{}} Hz: open the rig anew"
    box = Box(garbage, start=faster)
    starting = served(box).server
    starting._rate = 1000.0
    with pytest.raises(InstrumentError, match=words.format(1024)):
        starting._start()
    assert box.stopped.is_set()
    box = Box(read)
    running = served(box)
    running.server._rate = 1000.0
    running.server._start()
    assert running.received.poll(GUARD)
    assert running.received.recv().failure.startswith(words.format(2048))


def test_given_samples_lost_up_to_the_end_then_the_shorter_recording_says_so(tmp_path: Path) -> None:
    box = Box(garbage)
    capture = Capture(box, recording_to(tmp_path / "run", box, {}), 100, None, 1, 1000)
    for start in (0, 10**15):
        capture.offer(Block(start, np.ones((1, 60))))
    assert capture.wait(GUARD) and not capture.failed
    with open_lazily(capture.finished[0].path) as recording:
        assert len(recording) == 60
        (note,) = recording.about.events
    assert note["text"] == f"{LOST_AT_END}: of the samples asked for the last 40 are lost"


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


@pytest.mark.parametrize("patience", ["BLIND_SECONDS", "SILENT_SECONDS"])
def test_given_a_source_that_hangs_while_the_drive_plays_then_the_drive_is_tripped(
    served: Callable[[Box], Any], monkeypatch: pytest.MonkeyPatch, patience: str
) -> None:
    monkeypatch.setattr(stall, patience, 0.3)
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
    wait_until(lambda: drive.reasons)
    said = f"{BLAMED} has given no samples for 0 s"
    if patience == "BLIND_SECONDS":  # the drive ends, the acquisition waits a while longer
        said += ", so nobody saw whether a channel passes its limit"
        assert server._reading.is_set() and not box.stopped.is_set()
    else:
        said += ": the acquisition was ended."
        assert box.stopped.wait(GUARD)
    assert drive.reasons == [said] and drive.latch.reason == said
    wait_until(lambda: server._page.output == 0.0)
    status = server._page.status
    assert status.latched and status.state == "tripped" and status.reason == said
    _, stop = server._latest_stop
    assert (stop.kind, stop.sample) == ("trip", 50)  # the recording knows where


def test_given_a_drive_while_nobody_reads_the_source_then_it_is_tripped(
    served: Callable[[Box], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator plays on its own clock, whether the acquisition runs or has ended."""
    monkeypatch.setattr(stall, "BLIND_SECONDS", 0.3)
    server, drive = served(Box(garbage)).server, Drive()
    server._exciter = drive
    server._publish()
    wait_until(lambda: drive.reasons)
    assert drive.reasons == [
        f"{BLAMED} has not been read for 0 s, so nobody saw whether a channel passes its limit"
    ]


def test_given_a_process_that_was_frozen_then_its_source_has_not_hung() -> None:
    watch, counts = stall.Stall(0.01), StreamCounts()
    assert watch.silent(counts, 100.0) == 0.0
    assert watch.silent(counts, 4000.0) <= LONGEST_LOOK
    looks = [watch.silent(counts, 4000.0 + 0.01 * i) > watch.patience for i in range(1, 1100)]
    assert not looks[900] and looks[-1]
    assert watch.silent(StreamCounts(1), 4011.0) == 0.0


def test_given_a_counter_that_does_not_begin_at_zero_then_nothing_was_lost_before_its_first_sample() -> None:
    counter = StreamCounter(Box(garbage))
    for first in (104_009, 104_019, 104_036):
        counter.count(Block(first, np.zeros((1, 10))))
    assert (counter.counts.gaps, counter.counts.lost, counter.counts.samples) == (1, 7, 30)


def test_given_a_gap_of_a_channel_over_several_blocks_then_it_is_one() -> None:
    counter, values = StreamCounter(Box(garbage)), np.zeros((2, 10))
    for first, missing in (
        (0, [ChannelSpan(0, 5, 10), ChannelSpan(1, 5, 10)]),  # both channels at one time
        (10, [ChannelSpan(0, 10, 20), ChannelSpan(1, 10, 20)]),
        (20, [ChannelSpan(0, 20, 23), ChannelSpan(0, 25, 26)]),
        (30, [ChannelSpan(0, 30, 31)]),  # the one before ended earlier
    ):
        counter.count(Block(first, values, missing=tuple(missing)))
    assert counter.counts.gaps == 3


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
    assert said.startswith("It raised ValueError: cannot reshape array (test_failing_sources.py")
    (said,) = broken_promises(Box(garbage, start=wrong))
    assert "raises InstrumentError" in said
