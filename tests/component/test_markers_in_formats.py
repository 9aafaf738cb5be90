"""What a person marked is kept in other formats, or it is said that it is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from analysis import Excitation, Marker, Record
from app.cli import main
from drivers.formats import not_kept, open_lazily, read, write
from drivers.formats.drive import MARKERS, markers_from
from drivers.formats.options import Options

MARKED = (Marker(30, "hit"), Marker(120, "Größe µ 振"))


@pytest.fixture
def record() -> Record:
    drive = Excitation(7.5, 1.0, 0.3)
    x = np.sin(np.arange(200) / 9)
    return Record(100.0, Record.from_arrays(100.0, {"x": x}).channels, excitation=drive, markers=MARKED)


@pytest.mark.parametrize("ending", ["mat", "tdms", "h5"])
def test_given_markers_when_exported_then_they_come_back(record: Record, ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.{ending}"
    write(record, path)
    assert read(path).markers == MARKED and not_kept(record, path) == ""
    with open_lazily(path) as recording:
        assert MARKERS not in recording.about.metadata
        assert recording.slice(20, 100).markers == (Marker(10, "hit"),)
    if ending == "mat":
        with open_lazily(path, options=Options(resample=200.0)) as faster:
            assert [m.index for m in faster.about.markers] == [60, 240]


@pytest.mark.parametrize("ending", ["csv", "uff", "wav"])
def test_given_a_format_without_room_for_markers_then_convert_says_so(
    record: Record, ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(record, tmp_path / "run.h5")
    source, target = str(tmp_path / "run.h5"), str(tmp_path / f"run.{ending}")
    assert main(["convert", source, target]) == 0
    told = capsys.readouterr().err
    assert "cannot keep 2 markers and the drive and its phase" in told and ".mat" in told
    assert main(["convert", source, str(tmp_path / f"part.{ending}"), "--from", "0", "--to", "0.5"]) == 0
    assert "cannot keep 1 marker and" in capsys.readouterr().err
    plain = Record.from_arrays(100.0, {"x": np.zeros(20)})
    assert not_kept(plain, target) == ""


@pytest.mark.parametrize(
    "text", ["nonsense", "{}", "[1]", '[[1, "a"], ["x", 2], [-3, "b"], [4]]', "[" * 9000, "5"]
)
def test_given_markers_of_another_making_then_what_is_none_is_passed_over(text: str) -> None:
    assert all(marker == Marker(1, "a") for marker in markers_from({MARKERS: text}))
