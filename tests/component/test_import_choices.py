"""Files of other programs: what was guessed is said, and every guess can be changed."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from analysis import DataError, Record
from app.cli import main
from drivers.formats import open_lazily, read
from drivers.formats.options import Options
from drivers.formats.relabelling import joined, relabelled

LABORATORY = (
    "# Messgerät 7\nSerial;4711\n\nZeit (ms);Weg (mm);Kraft (N)\n0,0;1,5;2,0\n1,0;1,6;2,5\n2,0;1,7;3,0\n"
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "laboratory.csv"
    path.write_bytes(LABORATORY.encode("cp1252"))
    return path


def test_given_a_table_of_a_laboratory_then_info_says_how_it_was_read(table: Path, capsys) -> None:
    assert main(["info", str(table), "--json", "-"]) == 0
    guesses = json.loads(capsys.readouterr().out)["guesses"]
    assert (guesses["separator"], guesses["decimal"], guesses["header"]) == ("semicolon", "comma", 4)
    assert guesses["time"] == "Zeit" and guesses["columns"] == ["Zeit", "Weg", "Kraft"]
    assert main(["info", str(table)]) == 0
    assert (
        "times in column Zeit; separator semicolon, decimal comma, titles in line 4"
        in capsys.readouterr().out
    )


def test_given_other_choices_then_the_table_is_read_as_they_say(table: Path, tmp_path: Path, capsys) -> None:
    with open_lazily(table, options=Options(rate=50.0, time="")) as recording:
        assert list(recording.names) == ["Zeit", "Weg", "Kraft"]
        assert recording.rate == 50.0
    plain = tmp_path / "plain.csv"
    plain.write_text("1,5\n2,5\n3,5\n")  # two columns, or one with decimal commas
    both = [
        len(open_lazily(plain, options=Options(rate=1.0, separator=s, decimal=d)).names)
        for s, d in (("comma", "point"), ("blanks", "comma"))
    ]
    assert both == [2, 1]
    with pytest.raises(DataError, match="no column 'q'"):
        open_lazily(table, options=Options(time="q"))
    with pytest.raises(DataError, match="No separator 'dot'"):
        Options(separator="dot")
    out = tmp_path / "out.csv"
    line = ["convert", str(table), str(out), "--rename", "Weg=x", "--unit", "Weg=µm", "--join", str(table)]
    assert main(line) == 0
    capsys.readouterr()
    made = read(out)
    assert made.names == ("x", "Kraft") and made.channels["x"].unit == "µm" and len(made) == 6
    assert main(["convert", str(table), str(out), "--force", "--rename", "Weg=Kraft"]) == 1
    assert "Two channels would be called 'Kraft'" in capsys.readouterr().err


def test_given_matlab_and_hdf5_with_several_tables_then_table_and_times_can_be_chosen(tmp_path: Path) -> None:
    t, slow = np.arange(400) / 100, np.arange(50) / 10
    savemat(
        tmp_path / "a.mat",
        {"clock_s": t, "x": np.sin(t), "y": np.cos(t), "tick": slow, "temperature": 20 + slow},
    )
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values in (
            ("clock_s", t),
            ("x", np.sin(t)),
            ("y", np.cos(t)),
            ("tick", slow),
            ("T", 20 + slow),
        ):
            file["run/" + name] = values
    for name in ("a.mat", "a.h5"):
        with open_lazily(tmp_path / name, options=Options(rate=1.0)) as recording:
            assert len(recording.guesses.tables) == 2 and len(recording) == 400
            columns = recording.guesses.columns
        clock = next(c for c in columns if "clock" in c)
        with open_lazily(tmp_path / name, options=Options(time=clock)) as recording:
            assert recording.rate == pytest.approx(100.0) and len(recording.names) == 2
        with open_lazily(tmp_path / name, options=Options(table=2, rate=10.0)) as recording:
            assert len(recording) == 50 and recording.guesses.table == 2
        with pytest.raises(DataError, match="no table 3"):
            open_lazily(tmp_path / name, options=Options(table=3, rate=1.0))


def test_given_blocks_of_one_measurement_then_gaps_by_their_clocks_are_kept() -> None:
    def block(start: float | None, first: float) -> Record:
        return Record.from_arrays(10.0, {"x": first + np.arange(5.0)}, clock_time=start)

    whole = joined([block(0.0, 0), block(0.5, 5), block(1.3, 10)])
    assert len(whole) == 18 and whole.channels["x"].gaps == ((10, 13),)
    assert whole["x"][[0, 9, 13, 17]].tolist() == [0, 9, 10, 14]
    assert len(joined([block(0.0, 0), block(0.0, 5)])) == 10  # clocks that begin anew
    assert len(joined([block(None, 0), block(None, 5)])) == 10
    with pytest.raises(DataError, match="different rates"):
        joined([block(0.0, 0), Record.from_arrays(20.0, {"x": np.arange(5.0)})])
    with pytest.raises(DataError, match="do not belong together"):
        joined([block(0.0, 0), relabelled(block(0.0, 0), {"x": "z"}, {})])


def _whole(path: Path, options: Options) -> Record:
    with open_lazily(path, options=options) as recording:
        return recording.slice(0, len(recording))


def test_given_runs_with_times_of_their_own_then_each_is_read_with_those(tmp_path: Path) -> None:
    t = np.arange(500) / 100.0
    x = np.sin(2 * np.pi * 3 * t)
    runs = {"run1": {"time": t, "x": x}, "run2": {"time": 2 * t, "x": -x, "far": {"y": 5 * x}}, "Fs": 100.0}
    savemat(tmp_path / "runs.mat", runs)
    first, second = (_whole(tmp_path / "runs.mat", Options(table=table)) for table in (1, 2))
    by_rate = {record.rate: record for record in (first, second)}
    assert set(by_rate) == {100.0, 50.0}
    assert by_rate[100.0].names == ("run1.x",) and set(by_rate[50.0].names) == {"run2.x", "run2.far.y"}
    assert np.allclose(by_rate[50.0]["run2.far.y"], 5 * x)
    assert "the file names 100 Hz, its times tell 50 Hz" in by_rate[50.0].metadata["rates"]
    assert "rates" not in by_rate[100.0].metadata
    runs["run2"] |= {"time": t}  # type: ignore[operator]  # the same clock: one measurement
    savemat(tmp_path / "together.mat", runs)
    assert len(_whole(tmp_path / "together.mat", Options()).names) == 3
