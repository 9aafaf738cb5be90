"""The commands `info` and `convert` on real recordings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from analysis.base.record import Channel, Excitation, Record
from app.cli import main
from drivers.formats import open_lazily, read, write
from drivers.recording import ChannelSpec, Recorder


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Ten seconds of a sine of 1 V amplitude in counts, with a gap and an overload."""
    recorder = Recorder(
        tmp_path / "run",
        1000.0,
        [ChannelSpec("x", "V", "i2", scale=1e-4), ChannelSpec("f", "N")],
        start="2026-05-01T12:00:00+02:00",
        excitation=Excitation(5.0, 1.0, 0.5),
        metadata={"operator": "M"},
    )
    counts = np.round(1e4 * np.cos(2 * np.pi * 5 * np.arange(10_000) / 1000 + 0.5)).astype("i2")
    for start in [*range(0, 4000, 500), *range(5000, 10_000, 500)]:
        recorder.append([counts[start : start + 500], np.ones(500)], start)
    recorder.overload("f", 100, 110)
    recorder.note("door slammed", 2000)
    return recorder.close().path


def test_given_a_recording_when_info_is_asked_as_json_then_all_is_told(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(run), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rate"], told["samples"], told["duration"]) == (1000.0, 10_000, 10.0)
    assert told["start"] == "2026-05-01T12:00:00+02:00"
    drive = {"frequency": 5.0, "amplitude": 1.0, "phase": 0.5, "waveform": "sine", "until": None}
    assert told["excitation"] == drive
    assert told["checksum"]["ok"] is True
    assert told["events"] == [{"kind": "note", "index": 2000, "text": "door slammed"}]
    x, f = told["channels"]
    assert (x["name"], x["unit"], x["stored"], x["samples"]) == ("x", "V", "int16", 9000)
    assert x["gaps"] == [[4000, 5000]]
    assert x["mean"] == pytest.approx(0.0, abs=1e-6)
    assert x["rms"] == pytest.approx(np.sqrt(0.5), rel=1e-4)
    assert x["max"] == pytest.approx(1.0, abs=1e-3)
    assert f["overloads"] == [[100, 110]]
    assert f["mean"] == f["rms"] == f["min"] == f["max"] == 1.0


def test_given_a_recording_when_info_is_printed_then_a_person_sees_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(run)]) == 0
    text = capsys.readouterr().out
    for part in ("10000 samples at 1000 Hz: 10 s", "frequency 5.0", "door slammed", "every checksum agrees"):
        assert part in text


def test_given_times_in_milliseconds_then_info_shows_the_clock_in_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "".join(f"{30_000 + 20 * i},{i % 7}\n" for i in range(50))
    (tmp_path / "a.csv").write_text("time (ms),x\n" + rows)
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "b.h5"), "--from", "0.5"]) == 0
    capsys.readouterr()
    assert main(["info", str(tmp_path / "b.h5"), "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["clock_time"] == 30.5
    assert main(["info", str(tmp_path / "a.csv")]) == 0
    assert "the file's clock at the first sample: 30 s" in capsys.readouterr().out


def test_given_rows_that_a_logger_skipped_then_info_counts_them_as_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there = [i for i in range(100) if not 40 <= i < 52]
    savemat(tmp_path / "a.mat", {"t": np.array(there) / 50, "n": np.array(there, dtype=np.int16)})
    assert main(["info", str(tmp_path / "a.mat"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rate"], told["samples"]) == (50.0, 100)
    (channel,) = told["channels"]
    assert (channel["stored"], channel["samples"], channel["gaps"]) == ("int16", 88, [[40, 52]])
    assert main(["convert", str(tmp_path / "a.mat"), str(tmp_path / "b.h5"), "--resample", "100"]) == 0
    assert read(tmp_path / "b.h5").channels["n"].gaps == ((79, 104),)


def test_given_damage_on_disk_then_info_names_the_samples(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(run.read_bytes())
    place = content.index(np.ones(500).tobytes()[:4000])
    content[place + 16] ^= 0x10
    run.write_bytes(content)
    with open_lazily(run) as recording:
        verdict = recording.verify()
    assert verdict.ok is False
    assert "f 0 to 10000" in verdict.text
    assert main(["info", str(run)]) == 1
    assert "f' fail their checksum" in capsys.readouterr().err


def test_given_a_cut_when_converted_then_everything_moves_along(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "part.h5"
    assert main(["convert", str(run), str(out), "--from", "3.9", "--to", "6", "--channels", "x"]) == 0
    with open_lazily(out) as part, open_lazily(run) as whole:
        assert part.names == ("x",)
        assert part.raw(0, 0, 2100).dtype == np.int16  # counts stay counts
        assert np.array_equal(part.raw(0, 0, 2100), whole.raw(0, 3900, 6000))
        assert part.about.gaps == {"x": ((100, 1100),)}
        assert part.about.start == "2026-05-01T12:00:03.900000+02:00"
        assert part.about.excitation is not None
        assert part.about.excitation.phase == pytest.approx((0.5 + 2 * np.pi * 5 * 3.9) % (2 * np.pi))
        same = whole.slice(3900, 6000)
        assert np.array_equal(part.read()["x"], same["x"], equal_nan=True)
        assert (part.read().start, part.read().excitation) == (same.start, same.excitation)


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--channels", "y"], "No channel 'y'"),
        (["--from", "11"], "lasts 10 s"),
        (["--from", "5", "--to", "4"], "nothing from 5 to 4"),
    ],
)
def test_given_an_impossible_part_then_one_sentence_and_exit_code_1(
    run: Path, tmp_path: Path, extra: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(run), str(tmp_path / "b.csv"), *extra]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "b.csv").exists()


def test_given_an_existing_output_then_it_is_kept_unless_asked(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "b.csv"
    out.write_text("mine")
    assert main(["convert", str(run), str(out)]) == 1
    assert out.read_text() == "mine"
    assert main(["convert", str(run), str(out), "--force"]) == 0
    assert read(out).names == ("x", "f")
    before = run.read_bytes()
    assert main(["convert", str(run), str(run), "--force"]) == 1
    assert run.read_bytes() == before


def test_given_uneven_times_then_resample_is_what_converts_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,x\n0,0\n0.1,1\n0.25,2.5\n0.3,3\n0.4,4\n")
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "b.h5")]) == 1
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "b.h5"), "--resample", "20"]) == 0
    record = read(tmp_path / "b.h5")
    assert record.rate == 20.0
    np.testing.assert_allclose(record["x"], 10 * record.times, atol=1e-12)


def test_given_numbers_beyond_json_then_info_still_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = Record(
        1.0, {"x": Channel(np.array([np.nan, np.inf])), "y": Channel(np.array([1e200, 1e200]))},
        metadata={"bad": float("nan")},
    )  # fmt: skip
    write(record, tmp_path / "a.h5")
    assert main(["info", str(tmp_path / "a.h5"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["channels"][0]["rms"] is None
    assert told["channels"][1]["rms"] is None
    assert told["channels"][1]["max"] == 1e200
    assert told["metadata"]["bad"] is None
    assert main(["info", str(tmp_path / "a.h5")]) == 0
