"""Replay: record(replay(file)) is the file; pause, seek, speed."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from analysis.base.record import Channel, Excitation, Record
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.base.clock import InstantClock
from drivers.base.protocols import InstrumentError
from drivers.base.trigger import Trigger
from drivers.formats import open_lazily, read, write
from drivers.instruments.replay import ReplaySource
from drivers.recording import ChannelSpec, MemoryRecording, Recorder
from tests.waiting import GUARD, NotedClock


def original(folder: Path) -> Path:
    rng = np.random.default_rng(5)
    specs = [ChannelSpec("x", "mm"), ChannelSpec("raw", "V", "i2", 10 / 4096, 0.01)]
    recorder = Recorder(
        folder / "first.h5", 187.5, specs, "2026-05-01T10:00:00+00:00",
        Excitation(7.5, 1.5, 0.7), {"rig": "two wells", "calibration": {"x": {"gauge": 2.1}}},
    )  # fmt: skip
    for start in (1000, 2000, 3500):  # a gap of 500 samples in all channels
        counts = rng.integers(-2048, 2048, 1000).astype(np.int16)
        recorder.append([rng.standard_normal(1000), counts], start)
    recorder.overload("x", 2990, 3000)
    recorder.gap(1500, 1600, "raw")
    recorder.note("tapped", 2500)
    return recorder.close().path


def test_given_a_recording_when_replayed_and_recorded_then_bit_identical(tmp_path: Path) -> None:
    path = original(tmp_path)
    before = read(path)
    source = ReplaySource(open_lazily(path), clock=InstantClock())
    engine = Engine(source)
    capture = engine.record(recording_to(tmp_path / "again", source, before.metadata, before.start))
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    source.close()
    after = read(capture.finished[0].path)
    assert after.rate == before.rate and after.start == before.start
    assert after.metadata["calibration"] == before.metadata["calibration"]
    assert after.names == before.names
    for name in before.names:
        assert after[name].tobytes() == before[name].tobytes()
        assert after.channels[name].unit == before.channels[name].unit
        assert after.channels[name].gaps == before.channels[name].gaps
        assert after.channels[name].clipped == before.channels[name].clipped
    assert after.excitation is not None and before.excitation is not None
    assert after.excitation.frequency == 7.5 and after.excitation.amplitude == 1.5
    assert after.excitation.phase == pytest.approx(0.7, abs=1e-12)
    assert after.drive_time is None
    assert engine.status.samples == 3500 and engine.status.failure == ""


@pytest.mark.parametrize("excitation", [None, Excitation(7.5, 1.5, 0.7, "sweep")])
def test_given_the_drives_time_when_recorded_from_the_middle_of_a_replay_then_it_has_moved_along(
    tmp_path: Path, excitation: Excitation | None
) -> None:
    record = Record(100.0, {"x": Channel(np.arange(3000.0))}, excitation=excitation, drive_time=12.5)
    source = ReplaySource(MemoryRecording(record), clock=InstantClock())
    engine = Engine(source)
    capture = engine.record(recording_to(tmp_path / "late", source, {}, None), 500, Trigger("x", 1234.5))
    engine.start()
    assert capture.wait(GUARD)
    engine.stop()
    source.close()
    late = read(capture.finished[0].path)
    assert late["x"][0] == pytest.approx(1235, abs=1)
    assert late.drive_time == pytest.approx(12.5 + late["x"][0] / 100.0, abs=1e-9)
    write(late, tmp_path / "copy.h5")
    assert read(tmp_path / "copy.h5").drive_time == late.drive_time


def memory(samples: int = 1000, rate: float = 1000.0) -> MemoryRecording:
    return MemoryRecording(Record(rate, {"n": Channel(np.arange(samples, dtype=float))}))


@pytest.mark.parametrize(("speed", "seconds"), [(1.0, 0.3), (100.0, 30.0)])
def test_given_real_speed_and_a_hundredfold_then_time_taken_matches(speed: float, seconds: float) -> None:
    clock = NotedClock(speed)
    source = ReplaySource(memory(round(1000 * seconds)), clock=clock)
    begin = time.monotonic()
    source.start()
    while not source.read(np.empty((1, 50))).ended:
        pass
    taken = time.monotonic() - begin
    assert taken >= 0.98 * seconds / speed
    assert speed == 1 or taken < seconds  # not at real speed
    rounding = 4 * np.spacing(clock.moments[-1])  # of a clock that counts from the machine's start
    assert np.diff(clock.moments) == pytest.approx(0.05, abs=rounding)  # a delay is made up for


def test_given_pause_then_no_block_until_resumed() -> None:
    source = ReplaySource(memory(), clock=InstantClock())
    source.start()
    source.read(np.empty((1, 100)))
    source.pause()
    blocks: list[object] = []
    reader = threading.Thread(target=lambda: blocks.append(source.read(np.empty((1, 100)))))
    reader.start()
    time.sleep(0.1)
    assert not blocks
    source.resume()
    reader.join(GUARD)
    assert blocks


def test_given_pause_when_stopped_then_the_reader_is_let_go() -> None:
    source = ReplaySource(memory(), clock=InstantClock())
    engine = Engine(source)
    engine.start()
    source.pause()
    engine.stop()
    assert not engine.status.running and engine.status.failure == ""


def test_given_a_seek_then_other_samples_and_a_marked_break() -> None:
    source = ReplaySource(memory(), clock=InstantClock())
    source.start()
    first = source.read(np.empty((1, 100)))
    source.seek(700)
    second = source.read(np.empty((1, 100)))
    assert second.data[0, 0] == 700 and second.start_index == first.stop_index + 1 and "700" in second.reason
    source.seek(10)
    assert source.read(np.empty((1, 10))).data[0].tolist() == list(range(10, 20))
    assert source.position == 20


def test_given_not_started_then_reading_is_refused_in_words() -> None:
    source = ReplaySource(memory())
    with pytest.raises(InstrumentError, match="not running"):
        source.read(np.empty((1, 10)))
