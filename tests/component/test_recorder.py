"""Recording: what was appended is what the finished file holds, whatever happens on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.record import Channel, Excitation, Marker, Record
from analysis.signal import frequency_response as frf
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.base.clock import InstantClock
from drivers.formats import open_lazily, read, write
from drivers.recording import ChannelSpec, Recorder, find_unfinished, recover
from drivers.rig.profile import load_rig, open_rig
from tests.waiting import GUARD

RAMP = np.arange(20_000)


def recorded(path: Path, first: int = 0) -> Recorder:
    """Two channels, one in counts; samples 3000 to 4000 never arrive; blocks of 500."""
    recorder = Recorder(
        path,
        1000.0,
        [ChannelSpec("x", "V", "i2", scale=1e-3, offset=0.5), ChannelSpec("y", "mm")],
        start="2026-05-01T12:00:00+02:00",
        excitation=Excitation(5.0, 1.5, 0.25),
        metadata={"rig": "shaker 2", "sizes": [1, 2.5], "μ": {"a": None}},
    )
    for start in range(0, len(RAMP), 500):
        if not 3000 <= start < 4000:
            block = RAMP[start : start + 500]
            recorder.append([block.astype("i2"), block * 0.1], first + start)
    return recorder


def test_given_blocks_with_a_jump_when_closed_then_samples_spans_and_notes_are_all_there(
    tmp_path: Path,
) -> None:
    recorder = recorded(tmp_path / "run", first=777)
    recorder.overload("x", 777 + 5, 777 + 9)
    recorder.note("touched the table", 777 + 100)
    recorder.mark(2, "marker 2", 777 + 900)
    recorder.mark(1, "marker 1", 777 + 200)
    recorder.mark(2, "hammer", 777 + 900)  # its word was typed afterwards
    recorder.describe(operator="M")
    finished = recorder.close()
    assert finished.path == tmp_path / "run.h5"
    assert finished.problem is None
    assert not recorder.journal_path.exists()
    with open_lazily(finished.path) as recording:
        present = np.r_[0:3000, 4000:20_000]
        assert recording.raw(0, 0, 20_000).dtype == np.int16
        assert np.array_equal(recording.raw(0, 0, 20_000)[present], RAMP[present])
        assert np.array_equal(recording.values("x", 0, 10), RAMP[:10] * 1e-3 + 0.5)
        assert np.array_equal(recording.values("y", 0, 20_000)[present], (RAMP * 0.1)[present])
        assert np.isnan(recording.values("x", 3000, 4000)).all()
        assert np.isnan(recording.values("y", 3000, 4000)).all()
        about = recording.about
        assert recording.verify().ok is True
    assert about.gaps == {"x": ((3000, 4000),), "y": ((3000, 4000),)}
    assert about.clipped == {"x": ((5, 9),)}
    assert about.excitation == Excitation(5.0, 1.5, 0.25)
    assert about.start == "2026-05-01T12:00:00+02:00"
    assert about.metadata == {"rig": "shaker 2", "sizes": [1, 2.5], "μ": {"a": None}, "operator": "M"}
    assert about.events[0] == {"kind": "note", "index": 100, "text": "touched the table"}
    markers = (Marker(200, "marker 1"), Marker(900, "hammer"))
    assert about.markers == markers
    with open_lazily(finished.path) as recording:
        assert recording.slice(150, 900).markers == (Marker(50, "marker 1"),)
        whole = recording.read()
    assert whole.markers == markers
    write(whole, tmp_path / "copy.h5")
    assert read(tmp_path / "copy.h5").markers == markers


def test_given_a_recording_when_it_is_replayed_and_recorded_again_then_every_bit_is_the_same(
    tmp_path: Path,
) -> None:
    first = recorded(tmp_path / "first").close().path
    with open_lazily(first) as source:
        recorder = Recorder(tmp_path / "second", source.rate, source.about.channels)
        for start in range(0, len(source), 777):
            stop = min(start + 777, len(source))
            recorder.append([source.raw(i, start, stop) for i in range(2)], start)
        for start, stop in source.about.gaps["x"]:
            recorder.gap(start, stop)
        again = recorder.close().path
        with open_lazily(again) as copy:
            assert copy.about.gaps == source.about.gaps
            for i in range(2):
                assert copy.raw(i, 0, 20_000).tobytes() == source.raw(i, 0, 20_000).tobytes()


def test_given_a_record_when_written_and_read_then_nothing_is_lost(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    data = rng.standard_normal(200_001)
    data[[3, 50]] = [np.inf, -0.0]
    odd_nan = np.frombuffer(np.uint64(0x7FF8DEADBEEF0001).tobytes(), np.float64)
    data[7] = odd_nan[0]
    record = Record(
        610.3515625,
        {
            "x": Channel(data, "mm/s²", gaps=((1, 4), (10, 20)), clipped=((7, 9),)),
            "a/b": Channel(-data),
            "a∕b": Channel(2 * data, "g"),
            ".": Channel(3 * data),
        },
        start="2026-05-01T12:00:00+02:00",
        excitation=Excitation(3.0, None, 0.1, "square", 12.5),
        metadata={"tags": ["a"], "nested": {"deep": [1, None, True, 1e300]}, "long": "ä" * 100_000},
    )
    write(record, tmp_path / "a.h5")
    back = read(tmp_path / "a.h5")
    assert (back.rate, back.start, back.excitation, back.metadata, back.names) == (
        record.rate,
        record.start,
        record.excitation,
        record.metadata,
        record.names,
    )
    for name, channel in record.channels.items():
        got = back.channels[name]
        assert got.data.tobytes() == channel.data.tobytes()
        assert (got.unit, got.gaps, got.clipped) == (channel.unit, channel.gaps, channel.clipped)


def test_given_a_living_recorder_then_its_journal_is_not_offered_for_recovery(tmp_path: Path) -> None:
    recorder = recorded(tmp_path / "run")
    assert find_unfinished(tmp_path) == []
    recorder.close()
    assert find_unfinished(tmp_path) == []


def test_given_a_journal_that_somebody_recovers_first_then_the_recording_is_told_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of the journal and its finishing a window may start and find it unfinished."""
    recorder = Recorder(tmp_path / "run.h5", 100.0, ["x"])
    recorder.append(np.arange(50.0)[None], 0)
    close = recorder._journal.close

    def closed_and_recovered() -> object:
        failure = close()
        recover(recorder.journal_path)
        return failure

    monkeypatch.setattr(recorder._journal, "close", closed_and_recovered)
    finished = recorder.close()
    assert finished.path == tmp_path / "run.h5" and finished.samples == 50 and finished.problem is None
    assert len(read(finished.path)) == 50


def test_given_a_name_that_is_taken_then_nothing_is_overwritten(tmp_path: Path) -> None:
    recorded(tmp_path / "run").close()
    with pytest.raises(DataError, match="already there"):
        Recorder(tmp_path / "run", 1.0, ["x"])


def test_given_pipes_that_do_not_carry_every_name_then_the_recording_is_finished_under_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252:strict")  # as on Windows
    finished = recorded(tmp_path / "加速度 größe").close()
    assert finished.problem is None and finished.path == tmp_path / "加速度 größe.h5"
    assert finished.path.exists()


@pytest.mark.parametrize(
    ("block", "index", "message"),
    [
        (np.zeros((1, 5)), 500, "must have 2 channels"),
        ([np.zeros(5, "i2"), np.zeros(4)], 500, "equally many samples"),
        ([np.zeros(5), np.zeros(5)], 500, "stored as i2"),
        ([np.zeros(5, "i2"), np.zeros(5)], 499, "overlaps"),
    ],
)
def test_given_a_wrong_block_then_it_is_refused_and_the_rest_is_kept(
    tmp_path: Path, block: object, index: int, message: str
) -> None:
    recorder = Recorder(tmp_path / "run", 1000.0, [ChannelSpec("x", dtype="i2"), "y"])
    recorder.append([RAMP[:500].astype("i2"), RAMP[:500] * 1.0], 0)
    with pytest.raises(DataError, match=message):
        recorder.append(block, index)  # type: ignore[arg-type]
    assert len(read(recorder.close().path)) == 500


def test_given_a_drive_that_is_switched_off_half_way_then_the_recording_says_when(tmp_path: Path) -> None:
    profile = load_rig("two_well_beam_modern")
    rig = open_rig(profile, InstantClock())
    engine = Engine(rig.source, rig.exciter)
    rig.play()
    engine.start()
    engine.advance(profile.settle)
    capture = engine.record(recording_to(tmp_path / "half", engine.source, {}), round(4 * profile.rate))
    engine.advance(2.0)
    rig.exciter.stop()
    engine.advance(3.0)
    assert capture.wait(GUARD)
    engine.stop()
    rig.close()
    with open_lazily(capture.finished[0].path) as recording:
        drive = recording.about.excitation
        assert drive is not None and drive.frequency == 7.5 and drive.until is not None
        assert 2.0 < drive.until < 3.5  # ramped down
        whole = recording.read()
        driven, after = (
            recording.slice(0, round(2 * profile.rate)),
            whole.cut(round(3.6 * profile.rate), 8000),
        )
    assert driven.excitation is not None and driven.excitation.until is None  # nothing of the end is in it
    assert after.excitation is None
    doubts = [
        text
        for text in frf.doubts(frf.frequency_response(whole, "drive", "x"), whole)
        if "switched off" in text
    ]
    assert doubts == [f"The drive was switched off after {drive.until:.3g} s of 4 s: cut the rest off."]
