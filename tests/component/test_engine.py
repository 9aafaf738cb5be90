"""The acquisition engine with a counting source and the real recorder: nothing lost, every fault stored."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.base.clock import InstantClock
from drivers.base.protocols import Block, ChannelInfo, InstrumentError, Samples
from drivers.base.trigger import Trigger, TriggerFinder
from drivers.formats import open_lazily, read
from drivers.recording import RecordingStopped
from drivers.virtual.counter import CounterSource, Fault, miscounted
from tests.waiting import GUARD, NotedClock, wait_until


def run_to_end(engine: Engine, path: Path, length: int, **options: Any) -> Any:
    """Record from the first sample on: a source read at full speed may be over before a later call."""
    capture = engine.record(recording_to(path, engine.source, {"rig": "counter"}), length, **options)
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    return capture


def test_given_a_counter_in_real_time_when_recorded_then_every_sample_is_there(tmp_path: Path) -> None:
    engine = Engine(CounterSource(8, 51200.0))
    queue = engine.subscribe()
    capture = run_to_end(engine, tmp_path / "run", 51200)
    assert capture.failed == "" and capture.finished[0].problem is None
    record = read(capture.finished[0].path)
    data = np.array([record[n] for n in record.names])
    assert data.shape == (8, 51200)
    assert miscounted(data, int(data[0, 0])) == 0
    status = engine.status
    assert (status.gaps, status.lost, status.failure) == (0, 0, "")
    assert queue.read()[-1].data.shape == (8, 1024)


class Pretended(InstantClock):
    """A device's clock, which does not wait for its reader, but one that no busy machine makes late."""

    waits = False

    def wait_until(self, moment: float) -> None:
        time.sleep(0.001)  # not so fast that the recorder is left behind
        super().wait_until(moment)


def test_given_injected_faults_then_each_is_detected_stored_and_counted(tmp_path: Path) -> None:
    faults = [
        Fault("gap", 5000, samples=37),
        Fault("overload", 9000, samples=11),
        Fault("gap", 12_000, samples=3),
        Fault("late", 15_000, seconds=0.8),
        Fault("overload", 20_000, samples=5),
    ]
    clock = Pretended()
    engine = Engine(CounterSource(2, 10_000.0, clock, faults), queue_seconds=600.0, now=clock.now)
    capture = engine.record(recording_to(tmp_path / "run", engine.source, {}), 30_000)
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    status = engine.status
    assert (status.gaps, status.lost, status.overloads, status.overloaded, status.late) == (2, 40, 2, 16, 1)
    with open_lazily(capture.finished[0].path) as recording:
        about, record = recording.about, recording.read()
    first = int(record["c0"][0])
    assert about.gaps["c1"] == ((5000 - first, 5037 - first), (12_000 - first, 12_003 - first))
    assert about.clipped["c0"] == ((9000 - first, 9011 - first), (20_000 - first, 20_005 - first))
    assert "c1" not in about.clipped
    notes = [e["text"] for e in about.events]
    assert any("37 samples lost: injected" in n for n in notes) and any("late" in n for n in notes)
    good = record.channels["c1"].valid()
    expected = np.arange(first, first + 30_000) + 1 / 1024
    assert good.sum() == 30_000 - 40 and np.array_equal(record["c1"][good], expected[good])


class Sink:
    """A recorder that keeps its blocks in memory; a disk that hangs while ``takes`` is not set."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, Samples]] = []
        self.notes: list[str] = []
        self.closed = False
        self.takes = threading.Event()
        self.takes.set()

    def append(self, samples: Samples, first_index: int) -> None:
        self.takes.wait(GUARD)
        self.blocks.append((first_index, samples.copy()))

    def note(self, text: str, index: int | None = None) -> None:
        self.notes.append(text)

    def close(self) -> None:
        self.closed = True

    @property
    def data(self) -> Samples:
        return np.concatenate([block for _, block in self.blocks], axis=1)


def test_given_a_disk_too_slow_when_queue_is_full_then_loud_stop_and_everything_queued_saved() -> None:
    sink = Sink()
    sink.takes.clear()
    engine = Engine(CounterSource(4, 10_000.0), queue_seconds=0.5)
    engine.start()
    capture = engine.record(lambda n: sink)
    wait_until(lambda: engine.status.lag > 0.1, "the lag is not shown")
    wait_until(lambda: engine.status.failure, "the full queue is not said")
    assert not capture.done and engine.status.lag > 0.4
    sink.takes.set()
    assert capture.wait(GUARD)
    engine.stop()
    assert "too slow" in engine.status.failure and "saved" in engine.status.failure
    assert sink.closed and "recording ended early" in sink.notes[-1]
    assert sink.data.shape[1] >= 5000 and miscounted(sink.data, sink.blocks[0][0]) == 0


def test_given_a_source_that_waits_when_the_disk_is_slow_then_nothing_fails() -> None:
    sink = Sink()
    sink.takes.clear()
    engine = Engine(CounterSource(4, 10_000.0, InstantClock()), queue_seconds=0.1)
    engine.start()
    capture = engine.record(lambda n: sink, 50_000)
    wait_until(lambda: engine.status.queue >= 1, "the queue never fills")
    sink.takes.set()
    assert capture.wait(GUARD)
    engine.stop()
    assert sink.data.shape[1] == 50_000 and miscounted(sink.data, sink.blocks[0][0]) == 0
    assert not engine.status.failure


def test_given_nobody_looks_then_the_tap_drops_the_oldest_and_counts() -> None:
    engine = Engine(CounterSource(2, 10_000.0, InstantClock()))
    queue = engine.subscribe(seconds=0.1)
    sink = Sink()
    engine.start()
    assert engine.record(lambda n: sink, 100_000).wait(GUARD)
    engine.stop()
    blocks = queue.read()
    assert len(blocks) == 5 and engine.status.dropped > 100
    assert [b.start_index for b in blocks[1:]] == [b.stop_index for b in blocks[:-1]]
    assert queue.read() == []


class Switch:
    """An exciter that remembers why it was stopped."""

    unit, limits = "V", None

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def request_stop(self, reason: str = "STOP") -> None:
        self.reasons.append(reason)


def test_given_the_source_breaks_then_recording_is_saved_drive_stopped_and_it_is_said(tmp_path: Path) -> None:
    switch = Switch()
    engine = Engine(CounterSource(2, 10_000.0, faults=[Fault("error", 5000)]), switch)  # type: ignore[arg-type]
    capture = engine.record(recording_to(tmp_path / "run", engine.source, {}))
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    assert "broke" in engine.status.failure and switch.reasons == [engine.status.failure]
    record = read(capture.finished[0].path)
    data = np.array([record[n] for n in record.names])
    assert miscounted(data, int(data[0, 0])) == 0 and data[0, -1] == 4999


def test_given_the_disk_fills_up_then_the_message_says_so_and_the_stream_goes_on() -> None:
    class FullDisk(Sink):
        def append(self, samples: Samples, first_index: int) -> None:
            if len(self.blocks) == 5:
                raise RecordingStopped("The disk takes no more data.")
            super().append(samples, first_index)

    sink, switch = FullDisk(), Switch()
    engine = Engine(CounterSource(2, 10_000.0), switch)  # type: ignore[arg-type]
    engine.start()
    capture = engine.record(lambda n: sink)
    assert capture.wait(GUARD)
    wait_until(lambda: switch.reasons)
    went_on = engine.status.samples + 1000
    wait_until(lambda: engine.status.samples > went_on, "the stream stands still")
    assert engine.status.running and switch.reasons == ["The disk takes no more data."]
    assert engine.status.failure == "The disk takes no more data." and sink.closed
    engine.stop()


class Wave:
    """Three channels, the second a sine of period 1000 samples; as fast as it is read."""

    name, rate, waits = "wave", 1000.0, True
    channels = (ChannelInfo("a"), ChannelInfo("sine"), ChannelInfo("b"))

    def start(self) -> None:
        self.at = 0

    def read(self, into: Samples) -> Block:
        n = self.at + np.arange(into.shape[1])
        into[:] = [n, np.sin(2 * np.pi * n / 1000), -n]
        self.at = int(n[-1]) + 1
        return Block(int(n[0]), into, ended=self.at > 20_000)

    def stop(self) -> None: ...

    def close(self) -> None: ...


def test_given_a_trigger_then_captures_start_before_the_crossing_and_rearm(tmp_path: Path) -> None:
    trigger = Trigger("sine", 0.5, "rising", before=0.05, hold_off=2.5)
    engine = Engine(Wave())
    capture = run_to_end(engine, tmp_path / "run", 300, trigger=trigger, captures=3)
    assert [f.path.name for f in capture.finished] == ["run.h5", "run-2.h5", "run-3.h5"]
    starts = []
    for finished in capture.finished:
        record = read(finished.path)
        assert len(record) == 300
        assert record["sine"][49] < 0.5 <= record["sine"][50] and record["sine"][51] > record["sine"][50]
        assert record.metadata["trigger_index"] == 50
        starts.append(int(record["a"][0]))
    assert np.diff(starts).tolist() == [3000, 3000]  # hold-off lets two crossings pass


def test_given_a_capture_longer_than_a_period_then_the_next_trigger_comes_after_its_end(
    tmp_path: Path,
) -> None:
    engine = Engine(Wave())
    trigger = Trigger("sine", 0.0, "falling", before=0.2)
    capture = run_to_end(engine, tmp_path / "run", 1500, trigger=trigger, captures=2)
    first, second = (read(f.path)["a"] for f in capture.finished)
    assert len(first) == len(second) == 1500 and second[0] > first[-1] - 200


@pytest.mark.parametrize("slope", ["rising", "falling"])
def test_given_noise_on_an_edge_then_hysteresis_fires_once(slope: str) -> None:
    rng = np.random.default_rng(1)
    ramp = np.concatenate([np.linspace(-1, 1, 500), np.linspace(1, -1, 500)] * 4)
    if slope == "falling":
        ramp = -ramp
    noisy = ramp + 0.05 * rng.standard_normal(len(ramp))
    finder = TriggerFinder(Trigger("x", 0.0, slope, hysteresis=0.3), 1000.0)
    found, at = [], 0
    for start in range(0, 4000, 130):
        at, block = start, noisy[start : start + 130]
        while (index := finder.find(block[at - start :], at)) is not None:
            found.append(index)
            at = index + 1
    assert len(found) == 4
    assert np.abs(np.array(found) - (250 + 1000 * np.arange(4))).max() < 40


def test_given_a_recording_that_takes_long_to_finish_then_the_stream_is_no_lag_of_it() -> None:
    class SlowToClose(Sink):
        closing = threading.Event()
        may_close = threading.Event()

        def close(self) -> None:
            self.closing.set()
            self.may_close.wait(GUARD)
            super().close()

    sink = SlowToClose()
    engine = Engine(CounterSource(2, 10_000.0), queue_seconds=1.0)
    engine.start()
    capture = engine.record(lambda n: sink, 3000)
    assert sink.closing.wait(GUARD)
    beyond = engine.status.samples + 12_000  # more than the queue holds
    wait_until(lambda: engine.status.samples > beyond, "the stream stands still")
    assert engine.status.lag == 0 and engine.status.failure == "" and not capture.done
    sink.may_close.set()
    assert capture.wait(GUARD)
    engine.stop()
    assert sink.closed and engine.status.failure == ""
    assert sink.data.shape[1] == 3000


def test_given_the_stream_has_ended_then_a_recording_is_refused_instead_of_waiting_for_ever() -> None:
    engine = Engine(Wave())
    engine.start()
    wait_until(lambda: not engine.status.running)
    with pytest.raises(InstrumentError, match="has ended"):
        engine.record(lambda n: Sink())
    engine.stop()


def test_given_a_second_recording_while_one_runs_then_refused() -> None:
    before = threading.enumerate()
    engine = Engine(CounterSource(2, 10_000.0))
    engine.start()
    capture = engine.record(lambda n: Sink())
    with pytest.raises(InstrumentError, match="already"):
        engine.record(lambda n: Sink())
    capture.stop()
    engine.record(lambda n: Sink()).stop()
    engine.stop()
    ours = ("recorder", "acquisition")
    wait_until(lambda: not [t for t in threading.enumerate() if t.name in ours and t not in before])


def test_given_an_hour_of_simulated_time_then_the_sample_clock_is_right_to_a_millionth() -> None:
    clock = InstantClock()
    source = CounterSource(1, 187.5, clock)
    source.start()
    into = np.empty((1, 1875))
    for _ in range(360):
        source.read(into)
    assert clock.now() == pytest.approx(3600.0, rel=1e-9)


def test_given_real_time_then_the_counter_keeps_pace_without_drift() -> None:
    clock = NotedClock()
    source = CounterSource(1, 10_000.0, clock)
    begin = time.monotonic()
    source.start()
    into = np.empty((1, 100))
    for _ in range(50):
        source.read(into)
    assert time.monotonic() - begin >= 0.5
    # each block is due by the clock and not by the one before it, so a delay is made up for
    assert np.array(clock.moments) - clock.moments[0] == pytest.approx(0.01 * np.arange(50), abs=1e-9)


def test_given_the_time_of_day_jumps_then_no_sample_is_lost_late_or_moved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network time service sets the clock back an hour, then on by two, while a recording runs."""
    jumps = {"by": 0.0}
    true_time = time.time
    monkeypatch.setattr(time, "time", lambda: true_time() + jumps["by"])
    engine = Engine(CounterSource(2, 10_000.0))
    capture = engine.record(recording_to(tmp_path / "run", engine.source, {}))
    engine.start()
    for seconds in (-3600.0, 3600.0, 3600.0):
        reached = capture.recorded
        wait_until(lambda reached=reached: capture.recorded > reached + 1500)
        jumps["by"] = seconds
    capture.end()
    engine.stop()
    with open_lazily(capture.finished[0].path) as recording:
        notes, record = [e["text"] for e in recording.about.events], recording.read()
    data = np.array([record[n] for n in record.names])
    assert data.shape[1] > 4500 and miscounted(data, 0) == 0
    assert (engine.status.gaps, engine.status.failure) == (0, "")
    late = [float(n.split()[2]) for n in notes if n.startswith("block came")]
    assert max(late, default=0.0) < 1800  # a busy machine may be late, but not by the jump
