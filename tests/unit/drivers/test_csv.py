"""Tables of text: every usual way to write one is understood; what cannot be is said by line and column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.base.errors import DataError
from drivers.formats import open_lazily, read, write
from drivers.formats.options import Options


def table(tmp_path: Path, text: str, name: str = "a.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "t,x,v\n0,1.5,2\n0.1,2.5,3\n0.2,-3.5e0,4\n",
        "t;x;v\n0;1.5;2\n0.1;2.5;3\n0.2;-3.5;4\n",
        "t;x;v\n0,0;1,5;2\n0,1;2,5;3\n0,2;-3,5;4\n",  # decimal comma
        "t\tx\tv\n0,0\t1,5\t2\n0,1\t2,5\t3\n0,2\t-3,5\t4\n",
        "t\tx\tv\r\n0\t1.5\t2\r\n0.1\t2.5\t3\r\n0.2\t-3.5\t4\r\n",
        "t x v\n0   1.5 2\n0.1 2.5 3\n0.2 -3.5 4\n",
        '"t","x","v",\n0,1.5,2,\n0.1,2.5,3,\n0.2,-3.5,4,\n',
        "# a comment\n\nt,x,v\n0,1.5,2\n0.1,2.5,3\n# another\n0.2,-3.5,4",
        "\ufefftime [ms], x, v\n0, 1.5, 2\n100, 2.5, 3\n200, -3.5, 4\n",
        "t,x,v\n0D0,1.5D0,2\n1D-1,2.5,3\n2D-1,-3.5,4\n",  # Fortran
        "t,x,v\n[s],[],[]\n0,1.5,2\n0.1,2.5,3\n0.2,-3.5,4\n",
        "# of NumPy\n# t x v\n0e0 1.5 2\n1e-1 2.5 3\n2e-1 -3.5 4\n",
        "% t [s], x, v\n0,1.5,2\n0.1,2.5,3\n0.2,-3.5,4\n",
    ],
)
def test_given_any_usual_table_then_the_same_record_is_read(tmp_path: Path, text: str) -> None:
    record = read(table(tmp_path, text))
    assert record.rate == 10.0
    assert record.names == ("x", "v")
    assert record["x"].tolist() == [1.5, 2.5, -3.5]
    assert record["v"].tolist() == [2.0, 3.0, 4.0]


def test_given_units_in_brackets_or_in_a_second_row_then_they_are_units(tmp_path: Path) -> None:
    record = read(table(tmp_path, 't [s],"x, raw [mm/s^2]",f []\n0,1,2\n1,2,3\n2,3,4\n'))
    assert {n: c.unit for n, c in record.channels.items()} == {"x, raw": "mm/s^2", "f": ""}
    record = read(table(tmp_path, "Time;x;f\ns;mm;N\n0;1;2\n1;2;3\n2;3;4\n"))
    assert {n: c.unit for n, c in record.channels.items()} == {"x": "mm", "f": "N"}


@pytest.mark.parametrize("remark", ["# made by hand\n", "# a b c\n", "# t\n", "# 0 1 2\n"])
def test_given_a_remark_above_numbers_that_names_no_time_then_it_gives_no_titles(
    tmp_path: Path, remark: str
) -> None:
    record = read(table(tmp_path, remark + "0 1.5 2\n0.1 2.5 3\n0.2 -3.5 4\n"), rate=50.0)
    assert record.names == ("c1", "c2", "c3")


@pytest.mark.parametrize(
    ("title", "step", "said"), [("Time", 5, True), ("Time [s]", 5, False), ("Time", 0.005, False)]
)
def test_given_slow_times_without_a_unit_then_it_is_said_that_they_are_taken_as_seconds(
    tmp_path: Path, title: str, step: float, said: bool
) -> None:
    rows = "".join(f"{step * i:g},{i * i}\n" for i in range(20))
    guesses = open_lazily(table(tmp_path, f"{title},x\n{rows}")).guesses
    assert guesses is not None
    assert any("taken as seconds" in words for words in guesses.words()) == said


def test_given_titles_in_a_remark_then_they_are_chosen_by_its_line_or_not_at_all(tmp_path: Path) -> None:
    path = table(tmp_path, "# t x\n0 1.5\n0.1 2.5\n0.2 -3.5\n")
    guessed = open_lazily(path).guesses
    assert guessed is not None and guessed.header == 1
    assert open_lazily(path, options=Options(header=1)).names == ("x",)
    assert open_lazily(path, options=Options(header=2, rate=10.0)).names == ("c1", "c2")


def test_given_no_times_then_the_given_rate_counts(tmp_path: Path) -> None:
    record = read(table(tmp_path, "x,f\n1,2\n2,3\n"), rate=50.0)
    assert record.rate == 50.0
    record = read(table(tmp_path, "1 2\n2 3\n"), rate=50.0)
    assert record.names == ("c1", "c2")
    assert record["c2"].tolist() == [2.0, 3.0]


def test_given_a_single_column_then_it_is_a_channel(tmp_path: Path) -> None:
    assert read(table(tmp_path, "x\n1\n2\n3\n"), rate=1.0)["x"].tolist() == [1.0, 2.0, 3.0]
    assert read(table(tmp_path, "x [mm]\n1,5\n2,5\n"), rate=1.0)["x"].tolist() == [1.5, 2.5]


def test_given_an_empty_cell_then_it_is_not_a_number(tmp_path: Path) -> None:
    record = read(table(tmp_path, "t,x,v\n0,1,2\n1,,3\n2,nan,inf\n"))
    assert np.isnan(record["x"][1:]).all()
    assert record.channels["v"].valid().tolist() == [True, True, False]


def test_given_repeated_and_missing_names_then_all_channels_are_kept(tmp_path: Path) -> None:
    record = read(table(tmp_path, "t,x,x,,x_2\n0,1,2,3,4\n1,1,2,3,4\n"))
    assert len(set(record.names)) == 4
    assert record.names[0] == "x"
    assert record["x_2"].tolist() == [4.0, 4.0]


@pytest.mark.parametrize("digits", [4, 5, 6])
def test_given_rounded_times_then_the_rate_is_right_within_their_rounding(
    tmp_path: Path, digits: int
) -> None:
    rows = "".join(f"{i / 610.35:.{digits}f},{i}\n" for i in range(2000))
    assert read(table(tmp_path, "t,x\n" + rows)).rate == pytest.approx(610.35, rel=1e-4)


def test_given_whole_rates_then_they_are_exact(tmp_path: Path) -> None:
    for rate in (1.0, 44_100.0, 51_200.0, 1000.0):
        rows = "".join(f"{i / rate:.7f},{i}\n" for i in range(3000))
        assert read(table(tmp_path, "t,x\n" + rows)).rate == rate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,x\n0,1\n0.1,2\n0.3,3\n0.4,4\n", "not sampled uniformly.*--resample"),
        ("t,x\n0,1\n0.1,2\n0.1,3\n", "not sampled uniformly"),
        ("t,x\n0,1\n-2,2\n-1,3\n", "do not increase"),
        ("t,x\n0,1\nnan,2\n2,3\n", "not a number at sample 1"),
        ("t,x\n0,1\n1,2\ninf,3\n", "do not increase"),
        ("t,x\n0,1\n", "too few samples"),
        ("t,x\n", "not one sample"),
        ("x,f\n1,2\n3,4\n", "--rate"),
        ("t\n1\n2\n", "times but no channel"),
        ("t,x\n0,1\n1,abc\n2,3\n", "line 3, column x: 'abc' is not a number"),
        ("t,x\n0,1\n1,2,3\n2,3\n", "line 3: 3 columns"),
        ("t [fortnight],x\n0,1\n1,2\n", "fortnight"),
        ("", "empty"),
        ("\n\n\n", "no table"),
        ("# only a comment\n", "no table"),
        ("hello world\n", "no|not"),
    ],
)
def test_given_a_bad_table_then_one_sentence_says_what_and_where(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(table(tmp_path, text))
    assert "\n" not in str(caught.value)


def skipping(count: int = 200) -> NDArray[np.bool_]:
    """Which rows a logger wrote that lost 1, 30 and 5 of them."""
    there = np.ones(count, bool)
    there[[20, *range(50, 80), *range(150, 155)]] = False
    return there


LOST = ((20, 21), (50, 80), (150, 155))


@pytest.mark.parametrize(
    ("rate", "digits", "clock"), [(50.0, 6, 0.0), (3.0, 2, 0.0), (1000.0, 3, 1.7e9), (610.35, 6, -2.0)]
)
@pytest.mark.parametrize("comma", [False, True])
def test_given_skipped_rows_then_the_samples_are_marked_as_lost(
    tmp_path: Path, rate: float, digits: int, clock: float, comma: bool
) -> None:
    there = skipping()
    rows = "".join(f"{clock + i / rate:.{digits}f};{i}.5\n" for i in np.flatnonzero(there))
    text = "t;x\n" + rows
    record = read(table(tmp_path, text.replace(".", ",") if comma else text))
    assert record.rate == pytest.approx(rate, rel=1e-4)
    assert record.clock_time == pytest.approx(clock, abs=1e-9)
    assert record.channels["x"].gaps == LOST
    assert np.array_equal(np.isnan(record["x"]), ~there)
    assert np.array_equal(record["x"][there], np.flatnonzero(there) + 0.5)
    assert record.metadata["holes"] == "the times leave out 36 samples in 3 places: they are marked as lost"


def test_given_skipped_rows_then_a_part_has_the_holes_inside_it(tmp_path: Path) -> None:
    rows = "".join(f"{i / 50:.6f},{i}\n" for i in np.flatnonzero(skipping()))
    with open_lazily(table(tmp_path, "t,x\n" + rows)) as recording:
        part = recording.slice(60, 152)
    assert part.channels["x"].gaps == ((0, 20), (90, 92))
    assert np.array_equal(part["x"][20:90], np.arange(80.0, 150.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({100: 99}, "not sampled uniformly"),  # twice the same time
        ({100: 98}, "not sampled uniformly"),  # back in time
        ({100: 99.5}, "not sampled uniformly"),  # between the steps
        ({199: 1e6}, "not sampled uniformly"),  # a hole of thousands of records
    ],
)
def test_given_times_off_the_grid_then_skipped_rows_are_no_excuse(
    tmp_path: Path, change: dict[int, float], message: str
) -> None:
    steps = [change.get(i, float(i)) for i in np.flatnonzero(skipping()).tolist()]
    rows = "".join(f"{step / 50:.6f},1\n" for step in steps)
    with pytest.raises(DataError, match=message):
        read(table(tmp_path, "t,x\n" + rows))


def test_given_a_hole_when_resampling_then_nothing_is_drawn_across_it(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    times = np.arange(400) / 100 + 0.002 * rng.uniform(-1, 1, 400)
    times = np.delete(times, slice(100, 200))
    rows = "".join(f"{t!r},{float(np.sin(5 * t))!r}\n" for t in times.tolist())
    record = read(table(tmp_path, "t,x\n" + rows), resample=200.0)
    ((start, stop),) = record.channels["x"].gaps
    after = times[0] + record.times
    inside = (after > times[99]) & (after < times[100])
    assert np.array_equal(np.flatnonzero(inside), np.arange(start, stop))
    assert np.array_equal(np.isnan(record["x"]), inside)
    np.testing.assert_allclose(record["x"][~inside], np.sin(5 * after[~inside]), atol=1e-5)
    assert record.metadata["holes"].startswith(f"the times leave out {stop - start} samples in 1 place:")
    with pytest.raises(DataError, match="alias"):
        read(table(tmp_path, "t,x\n" + rows), resample=90.0)


def test_given_uneven_times_when_resampling_is_asked_then_a_smooth_signal_is_interpolated(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    times = np.sort(rng.uniform(0, 10, 5000))
    rows = "".join(f"{t!r},{float(np.sin(t))!r}\n" for t in times.tolist())
    path = table(tmp_path, "t,x\n" + rows)
    with pytest.raises(DataError, match="uniformly"):
        read(path)
    record = read(path, resample=1000.0)
    assert record.rate == 1000.0
    np.testing.assert_allclose(record["x"], np.sin(times[0] + record.times), atol=1e-6)
    with pytest.raises(DataError, match="alias"):
        read(path, resample=100.0)


@pytest.mark.parametrize(
    ("title", "name", "unit"),
    [
        ("disp (mm)", "disp", "mm"), ("disp/mm", "disp", "mm"), ("acc/m/s^2", "acc", "m/s^2"),
        ("a (m/s²)", "a", "m/s²"), ("Kraft / N", "Kraft", "N"), ("temp (°C)", "temp", "°C"),
        ("x (left)", "x (left)", ""), ("group/x", "group/x", ""), ("x [raw]", "x", "raw"),
        ("f (1/s)", "f", "1/s"),         ("x", "x", ""), ("/mm", "/mm", ""), ("(mm)", "(mm)", ""),
    ],
)  # fmt: skip
def test_given_a_title_as_laboratories_write_it_then_its_unit_is_known(
    tmp_path: Path, title: str, name: str, unit: str
) -> None:
    record = read(table(tmp_path, f"t;{title}\n0;1\n1;2\n2;3\n"))
    assert [(n, c.unit) for n, c in record.channels.items()] == [(name, unit)]


def test_given_a_name_that_looks_like_a_unit_then_it_survives_writing(tmp_path: Path) -> None:
    record = read(table(tmp_path, "t,group/V [],x (mm) [cm]\n0,1,2\n1,2,3\n2,3,4\n"))
    assert record.names == ("group/V", "x (mm)")
    write(record, tmp_path / "b.csv")
    again = read(tmp_path / "b.csv")
    assert {n: c.unit for n, c in again.channels.items()} == {"group/V": "", "x (mm)": "cm"}


def test_given_a_western_code_page_then_its_letters_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("t;größe (µm);a (m/s²)\n0;1;2\n1;2;3\n2;3;4\n".encode("cp1252"))
    assert {n: c.unit for n, c in read(path).channels.items()} == {"größe": "µm", "a": "m/s²"}


@pytest.mark.parametrize("lines", [1, 3, 40, 3000])
@pytest.mark.parametrize("units", [False, True])
def test_given_remarks_above_the_header_then_they_are_passed_over(
    tmp_path: Path, lines: int, units: bool
) -> None:
    remarks = "".join(f"Setting {i}: value, 3\n" if i % 3 else "Operator: M\n" for i in range(lines))
    head = "t;x;f\ns;mm;N\n" if units else "t;x (mm);f (N)\n"
    record = read(table(tmp_path, remarks + head + "0;1;2\n0.1;2;3\n0.2;3;4\n"))
    assert record.rate == 10.0
    assert {n: c.unit for n, c in record.channels.items()} == {"x": "mm", "f": "N"}
    assert record["x"].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("first", "second", "rest"),
    [
        ("2026-11-18T23:59:59.998", "2026-11-19T00:00:00.000", "2026-11-19T00:00:00.002"),
        ("18.11.2026 23:59:59,998", "19.11.2026 00:00:00,000", "19.11.2026 00:00:00,002"),
        ("23:59:59.998", "00:00:00.000", "00:00:00.002"),
    ],
)
def test_given_times_of_day_over_midnight_then_the_rate_is_theirs_and_remarks_around_are_passed_over(
    tmp_path: Path, first: str, second: str, rest: str
) -> None:
    path = tmp_path / "logger.csv"
    rows = "\n".join(f"{stamp};{value}" for stamp, value in ((first, "1,5"), (second, "2,5"), (rest, "3,5")))
    path.write_text(f"Hall;3\nTime;x [mm]\n{rows}\n\nEnd of the record;3 rows\n", encoding="utf-8")
    record = read(path)
    assert record.rate == pytest.approx(500.0, rel=1e-8) and record["x"].tolist() == [1.5, 2.5, 3.5]
    path.write_text("t;x\n0;1\n1;2\npause;here\n2;3\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 4: no numbers, and more of them behind it"):
        read(path)


@pytest.mark.parametrize("title", ["T", "T [K]", "T [s]"])
def test_given_a_temperature_beside_the_times_then_it_is_a_channel(tmp_path: Path, title: str) -> None:
    path = tmp_path / "warm.csv"
    rows = "\n".join(f"{k / 100},{300 + 5 * k % 7},{k + 0.5}" for k in range(20))
    path.write_text(f"t,x,{title}\n{rows}\n")

    record = read(path)

    assert record.names == ("x", "T")
    assert record["T"][3] == 3.5
    write(record, tmp_path / "again.csv")
    assert np.array_equal(read(tmp_path / "again.csv")["T"], record["T"])


def test_given_a_single_T_then_what_stands_in_it_tells_whether_it_is_the_time(tmp_path: Path) -> None:
    timed, warm = tmp_path / "timed.csv", tmp_path / "warm.csv"
    timed.write_text("T,x\n" + "\n".join(f"{k / 50},{k * k}" for k in range(20)))
    warm.write_text("T,x\n" + "\n".join(f"{20 + k % 3},{k * k}" for k in range(20)))

    assert (read(timed).rate, read(timed).names) == (50.0, ("x",))
    assert read(warm, rate=50.0).names == ("T", "x")


def test_given_times_with_too_few_digits_when_the_rate_is_known_then_it_counts(tmp_path: Path) -> None:
    path = tmp_path / "coarse.csv"
    path.write_text("t,x\n" + "\n".join(f"{round(k / 60, 2)},{k * k}" for k in range(100)))
    with pytest.raises(DataError, match="not sampled uniformly"):
        read(path)
    assert (read(path, rate=60.0).rate, len(read(path, rate=60.0))) == (60.0, 100)
    with pytest.raises(DataError, match="not sampled uniformly"):
        read(path, rate=62.0)


def test_given_times_that_start_again_then_the_place_is_said(tmp_path: Path) -> None:
    path = tmp_path / "blocks.csv"
    path.write_text("t,x\n" + "\n".join(f"{k % 40 / 50},{k * k}" for k in range(100)))
    with pytest.raises(DataError, match=r"go back from 0\.78 s to 0 s at sample 40"):
        read(path)


def test_given_a_column_of_words_then_it_is_left_out_and_said(tmp_path: Path) -> None:
    path = tmp_path / "remarks.csv"
    rows = "".join(f'"{i / 100:.2f}";"{i * 0.5:.1f}";"ok; fine"\n'.replace(".", ",") for i in range(20))
    path.write_text('"Time, s";"Displacement, mm";"Comment"\n' + rows)
    with open_lazily(path) as recording:
        assert (recording.names, recording.rate, recording.unit("Displacement")) == (
            ("Displacement",),
            100.0,
            "mm",
        )
        np.testing.assert_allclose(recording.values("Displacement", 0, 20), 0.5 * np.arange(20))
        assert recording.guesses is not None
        assert "column Comment holds no numbers and is left out" in recording.guesses.words()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_given_a_table_in_utf_16_then_it_is_read(tmp_path: Path, encoding: str) -> None:
    text = "Zeit\tWeg\nms\tµm\n" + "".join(f"{10 * i},0\t{i},5\n" for i in range(20))
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = tmp_path / "wide.txt"
    path.write_bytes((mark + text).encode(encoding))
    with open_lazily(path) as recording:
        assert (recording.rate, recording.unit("Weg")) == (100.0, "µm")
        np.testing.assert_allclose(recording.values("Weg", 0, 20), np.arange(20) + 0.5)


def test_given_no_titles_then_a_column_can_be_chosen_for_the_times(tmp_path: Path) -> None:
    path = tmp_path / "bare.dat"
    path.write_text("".join(f"{i / 50:.2f} {i}\n" for i in range(20)))
    with open_lazily(path, options=Options(time="c1")) as recording:
        assert (recording.names, recording.rate) == (("c2",), 50.0)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "t;x\n0,0;1.234,5\n0,1;999,25\n0,2;-12.500\n0,3;1.234.567,0\n",
            [1234.5, 999.25, -12500.0, 1234567.0],
        ),
        (
            't,x\n0,"1,234.5"\n0.1,999.25\n0.2,"-12,500"\n0.3,"1,234,567"\n',
            [1234.5, 999.25, -12500.0, 1234567.0],
        ),
        ("t\tx\n0.0\t1,234.5\n0.1\t999.25\n0.2\t0.5\n0.3\t10,000.0\n", [1234.5, 999.25, 0.5, 10000.0]),
        ("t;x\n0,0;1\u202f234,5\n0,1;999,25\n0,2;−0,5\n0,3;10\u00a0000\n", [1234.5, 999.25, -0.5, 10000.0]),
        ("t;x\n0.0;1'234.5\n0.1;999.25\n0.2;0.5\n0.3;10'000\n", [1234.5, 999.25, 0.5, 10000.0]),
    ],
)
def test_given_thousands_marks_then_they_are_taken_out_and_said(
    tmp_path: Path, text: str, values: list[float]
) -> None:
    with open_lazily(table(tmp_path, text)) as recording:
        assert recording.values("x", 0, 4).tolist() == values and recording.rate == 10.0
        assert recording.guesses is not None
        assert "thousands marks are taken out" in recording.guesses.words()


def test_given_a_mark_that_may_be_of_thousands_or_of_decimals_then_nothing_is_guessed(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"line 3, column y: '1\.234' has a thousands mark or another decimal mark"
    ):
        read(table(tmp_path, "t;x;y\n0,0;0,5;0,1\n0,1;1,5;1.234\n0,2;2,5;2,5\n"))
    # All with one mark and three digits: they are decimals, as before.
    assert read(table(tmp_path, "t;x\n0,0;1,234\n0,1;2,345\n0,2;3,456\n"))["x"].tolist() == [
        1.234,
        2.345,
        3.456,
    ]


@pytest.mark.parametrize(
    ("first", "second", "order"),
    [
        ("11/18/2026", "11/19/2026", "month/day/year"),
        ("18/11/2026", "19/11/2026", "day/month/year"),
        ("03/04/2026", "03/05/2026", "month/day/year"),  # a day passed, not a month
        ("03/04/2026", "04/04/2026", "day/month/year"),
        ("18.11.2026", "19.11.2026", ""),
        ("2026/11/18", "2026/11/19", ""),
    ],
)
def test_given_dates_beside_times_of_day_with_halves_then_they_are_the_times(
    tmp_path: Path, first: str, second: str, order: str
) -> None:
    rows = [f"{first};11:59:{50 + i}.0 PM;{i}" for i in range(10)]
    rows += [f"{second};12:00:0{i}.0 a.m.;{10 + i}" for i in range(10)]
    path = table(tmp_path, "Logger 7\n\nDate;Time;x [mm]\n" + "\n".join(rows) + "\n")
    with open_lazily(path) as recording:
        assert (recording.names, recording.rate, len(recording)) == (("x",), 1.0, 20)
        assert recording.about.clock_time == 86400.0 - 10.0
        assert recording.guesses is not None
        words = recording.guesses.words()
        assert words[0] == "times in column Time" and "column Date holds the dates of the times" in words
        assert [w for w in words if w.startswith("dates are")] == ([f"dates are {order}"] if order else [])


def test_given_a_date_then_days_without_a_row_are_a_hole(tmp_path: Path) -> None:
    rows = [
        f"11/{18 + 2 * (i > 9)}/2026,{1 + i % 12:02d}:00:00 {'AM' if i < 5 else 'PM'},{i}" for i in range(5)
    ]
    rows += [f"11/20/2026,{1 + i:02d}:00:00 AM,{i}" for i in range(9)]
    with open_lazily(table(tmp_path, "Date,Time,x\n" + "\n".join(rows) + "\n")) as recording:
        assert recording.rate == pytest.approx(1 / 3600) and recording.about.gaps["x"] == ((5, 48),)


def test_given_date_and_time_in_one_column_of_any_name_then_it_holds_the_times(tmp_path: Path) -> None:
    rows = [f"1/2/2026 1:05:0{i}.5 PM\t{i}" for i in range(6)]
    with open_lazily(table(tmp_path, "Sample taken\tx\n" + "\n".join(rows) + "\n")) as recording:
        assert (recording.names, recording.rate) == (("x",), 1.0)
        assert recording.about.clock_time == 13 * 3600 + 5 * 60 + 0.5


@pytest.mark.parametrize("word", ["OVLD", "+OL", "Over-range", "OVERLOAD", "9.9E+37", "-9.90000000E+37"])
def test_given_the_word_for_an_overload_then_the_samples_are_marked_as_clipped(
    tmp_path: Path, word: str
) -> None:
    cells = [word if i in (3, 4, 70) else f"{i * 0.5}" for i in range(90)]
    text = "t,x,y\n" + "".join(f"{i / 10},{cell},{i}\n" for i, cell in enumerate(cells))
    with open_lazily(table(tmp_path, text)) as recording:
        assert recording.about.clipped == {"x": ((3, 5), (70, 71))}
        values = recording.values("x", 0, 90)
        assert np.flatnonzero(np.isnan(values)).tolist() == [3, 4, 70] and values[5] == 2.5
        assert recording.guesses is not None
        assert any("marked as clipped" in words for words in recording.guesses.words())
    record = read(table(tmp_path, text))
    assert record.channels["x"].clipped == ((3, 5), (70, 71)) and not record.channels["x"].valid()[3]


def test_given_overloads_in_a_table_with_skipped_rows_then_they_stand_on_the_whole_grid(
    tmp_path: Path,
) -> None:
    text = "t,x\n" + "".join(
        f"{i / 10},{'OL' if i in (30, 31) else i}\n" for i in range(40) if not 5 <= i < 9
    )
    assert read(table(tmp_path, text)).channels["x"].clipped == ((30, 32),)


def test_given_words_for_no_value_then_they_are_no_numbers_and_a_dash_may_be_a_unit(tmp_path: Path) -> None:
    text = "t;strain;status\ns;-;-\n" + "".join(f"{i / 10};{'---' if i == 2 else i};ok\n" for i in range(9))
    record = read(table(tmp_path, text))
    assert record.names == ("strain",) and np.flatnonzero(np.isnan(record["strain"])).tolist() == [2]


@pytest.mark.parametrize("empty", [1, 2, 3])
def test_given_remarks_two_header_rows_and_an_empty_cell_in_the_first_row_then_the_header_is_found(
    tmp_path: Path, empty: int
) -> None:
    rows = [[f"{0.01 * i:.2f}", f"{i}.5", f"{2 * i}.25", f"{-i}.5"] for i in range(20)]
    rows[0][empty] = ""
    body = "\r\n".join(";".join(row).replace(".", ",") for row in rows)
    head = "Prüfstand groß\r\nDatum;18.11.2026\r\n\r\nZeit;Weg;Kraft;Beschl.\r\ns;mm;N;m/s²\r\n"
    (tmp_path / "a.csv").write_bytes((head + body).encode("cp1252"))
    record = read(tmp_path / "a.csv")
    assert record.rate == 100.0 and record.names == ("Weg", "Kraft", "Beschl.")
    assert [record.channels[n].unit for n in record.names] == ["mm", "N", "m/s²"]
    assert [int(np.isnan(record[n]).sum()) for n in record.names] == [int(k == empty) for k in (1, 2, 3)]
    assert record["Kraft"][-1] == 38.25


def test_given_decimal_commas_in_quotation_marks_between_commas_then_they_are_read(tmp_path: Path) -> None:
    rows = "\n".join(f'"{i / 100:.2f}","{i}.5"'.replace(".", ",") for i in range(20))
    (tmp_path / "a.csv").write_text('"t","x"\n' + rows)
    record = read(tmp_path / "a.csv")
    assert record.rate == 100.0 and list(record["x"]) == [i + 0.5 for i in range(20)]


def test_given_times_coarser_than_the_step_then_the_rate_is_asked_for(tmp_path: Path) -> None:
    rows = "\n".join(f"{i / 250:.2f},{i}" for i in range(500))
    (tmp_path / "a.csv").write_text("t,x\n" + rows)
    with pytest.raises(DataError, match=r"written too coarsely.*about 250 Hz.*--rate"):
        read(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv", rate=250.0).rate == 250.0


USUAL = ["t,x,v", "0,1.5,2", "0.1,2.5,3", "0.2,-3.5,4"]


def test_given_titles_with_line_breaks_then_they_are_titles_and_lines_keep_their_numbers(
    tmp_path: Path,
) -> None:
    head = 'Operator,"Jane\nDoe, 12"" rig"\n"Time\r\n[s]","Weg\r\n[mm]","Kraft\r\n(N)"\r\n'
    record = read(table(tmp_path, head + "\n".join(USUAL[1:])))
    assert record.rate == 10.0 and record.names == ("Weg", "Kraft")
    assert [record.channels[n].unit for n in record.names] == ["mm", "N"]
    with pytest.raises(DataError, match=r"line 9, column Kraft.*'oops' is not a number"):
        read(table(tmp_path, head + "\n".join([*USUAL[1:3], "0.2,-3.5,oops", USUAL[3], USUAL[3]])))


@pytest.mark.parametrize("behind", ["Mean,0.0,1\nMax,1,2\n", "\nMittelwert;0;1\n", "Std. Dev.:\t0.7\t1\n"])
def test_given_statistics_behind_the_table_then_they_are_no_rows_and_named(
    tmp_path: Path, behind: str
) -> None:
    sign = next(s for s in ",;\t" if s in behind)
    path = table(tmp_path, "\n".join(USUAL).replace(",", sign) + "\n" + behind)
    assert read(path)["x"].tolist() == [1.5, 2.5, -3.5]
    guesses = open_lazily(path).guesses
    assert guesses is not None and "rows behind the table are left out: M" in guesses.notes[0].replace(
        "Std", "Mean"
    )


@pytest.mark.parametrize(
    ("above", "rate"),
    [
        ("Instrument,ACME 5\nSample interval,5,ms\nSamples,3\n\n", 200.0),
        ("Instrument,ACME 5\nSampling rate,0.2,kHz\n\n", 200.0),
        ("Sampling Rate (kS/s),0.2\n", 200.0),
        ("# Sample period: 5000 us\n", 200.0),
        ("dt = 0.005\n", 200.0),
        ("Fréquence d'échantillonnage: 200 Hz\n", 200.0),
        ("Sample interval,5,ms\nSampling rate,200,Hz\n\n", 200.0),
        ("Sample interval,5,ms\nSampling rate,100,Hz\n\n", None),  # one of the two is of something else
        ("Sample interval,5\n\n", None),  # of seconds, or of milliseconds
        ("Sampling rate,51200,MB\n\n", None),
    ],
)
def test_given_a_rate_above_a_table_without_times_then_it_counts_if_it_is_beyond_doubt(
    tmp_path: Path, above: str, rate: float | None
) -> None:
    path = table(tmp_path, above + "x [mm],F [N]\n1.5,2\n2.5,3\n-3.5,4\n")
    if rate is None:
        with pytest.raises(DataError, match="does not tell its sample rate"):
            read(path)
    else:
        record = read(path)
        assert record.rate == rate and record.names == ("x", "F")
        guesses = open_lazily(path).guesses
        assert guesses is not None and "the rate, 200 Hz, stands above the titles" in guesses.notes
    assert read(path, rate=50.0).rate == 50.0  # the user knows better
    assert read(table(tmp_path, above + "\n".join(USUAL))).rate == 10.0  # and so do times


def test_given_times_that_run_downwards_then_the_rows_are_turned_around_and_it_is_said(
    tmp_path: Path,
) -> None:
    path = table(tmp_path, "\n".join(["t,x,v", "0.3,OVLD,5", *USUAL[:0:-1]]))
    record = read(path)
    assert record.rate == 10.0 and record["v"].tolist() == [2.0, 3.0, 4.0, 5.0]
    assert record["x"][:3].tolist() == [1.5, 2.5, -3.5] and record.channels["x"].clipped == ((3, 4),)
    guesses = open_lazily(path).guesses
    assert guesses is not None and "times run downwards: the rows are turned around" in guesses.notes
    with pytest.raises(DataError, match="do not increase"):
        read(table(tmp_path, "\n".join([USUAL[0], USUAL[3], USUAL[1], USUAL[2]])))


@pytest.mark.parametrize("title", ["temps", "Temps (s)", "tempo", "temps_s", "time_s"])
def test_given_times_in_french_or_with_the_unit_in_the_name_then_they_are_times(
    tmp_path: Path, title: str
) -> None:
    rows = [title + USUAL[0][1:], *USUAL[1:]]
    assert read(table(tmp_path, "\n".join(rows))).names == ("x", "v")


@pytest.mark.parametrize("values", ["20,21,21", "22,21,20.5", "20,21,22"])
def test_given_temperatures_named_temps_beside_times_then_they_are_a_channel(
    tmp_path: Path, values: str
) -> None:
    rows = [f"{row},{v}" for row, v in zip(USUAL, ["temps", *values.split(",")], strict=True)]
    assert read(table(tmp_path, "\n".join(rows))).names == ("x", "v", "temps")
