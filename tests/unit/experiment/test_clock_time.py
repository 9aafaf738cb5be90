"""A model's t where only the file's own clock tells it: parameters count by it, a sweep is found from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.io import savemat
from scipy.special import fresnel

from analysis import Excitation, Identification, Model, Record, identify
from analysis.experiment import Conditions, Experiment
from drivers.formats import open_lazily, read, write
from drivers.recording import Part

A, B = 0.5, -0.01  # of the decay whose rate changes with time
RATE, SAMPLES = 50.0, 400
NOISE = 1e-4
AGEING = Model.from_equations(
    {"x": "-(a + b*t)*x"}, {"a": {"guess": 0.3}, "b": {"guess": 0.0}}, outputs={"x": "x"}
)
W = 0.2  # of the sweep sin(W t^2)
SWEEP = Model.from_equations({"x": "a*sin(0.2*t^2)"}, {"a": {"guess": 0.7}}, outputs={"x": "x"})


def decay(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """x' = -(A + B t) x from 2 at the first time, with noise."""
    noise = NOISE * np.random.default_rng(3).standard_normal(len(t))
    return 2 * np.exp(-A * (t - t[0]) - 0.5 * B * (t**2 - t[0] ** 2)) + noise


def swept(t: NDArray[np.float64]) -> NDArray[np.float64]:
    """x' = sin(W t^2), with noise."""
    noise = NOISE * np.random.default_rng(4).standard_normal(len(t))
    return np.sqrt(np.pi / (2 * W)) * fresnel(np.sqrt(2 * W / np.pi) * t)[0] + noise


def times(first: float) -> NDArray[np.float64]:
    return first + np.arange(SAMPLES) / RATE


def assert_true(found: Identification, **truth: float) -> None:
    assert found.verdict == "fits"
    for name, value in truth.items():
        parameter = found.parameters[name]
        assert abs(parameter.value - value) < 4 * parameter.stderr
        assert parameter.stderr < 0.01


def write_table(path: Path, title: str, t: NDArray[np.float64], x: NDArray[np.float64]) -> None:
    np.savetxt(path, np.column_stack([t, x]), delimiter=",", header=f"{title},x", comments="", fmt="%.12g")


@pytest.mark.parametrize("first", [0.0, 30.0, -2.0])
@pytest.mark.parametrize("kind", ["csv", "ms", "mat"])
def test_given_times_in_a_file_then_slopes_in_t_are_by_its_clock(
    tmp_path: Path, first: float, kind: str
) -> None:
    t = times(first)
    path = tmp_path / ("a.mat" if kind == "mat" else "a.csv")
    if kind == "mat":
        savemat(path, {"t": t, "x": decay(t)})
    else:
        milli = kind == "ms"
        write_table(path, "t [ms]" if milli else "t", 1000 * t if milli else t, decay(t))
    record = read(path)
    assert record.clock_time == pytest.approx(first, abs=1e-12)
    assert record.drive_time is None
    found = identify(AGEING, record)
    assert_true(found, a=A, b=B)
    said = [words for words in found.warnings if "clock" in words]
    assert len(said) == (first != 0)
    assert all("the value of a depends" in words for words in said)


def test_given_a_cut_then_the_clock_moves_along_and_the_numbers_stay(tmp_path: Path) -> None:
    t = times(30.0)
    write_table(tmp_path / "a.csv", "t", t, decay(t))
    record = read(tmp_path / "a.csv")
    assert record.cut(100, 350).clock_time == pytest.approx(32.0)
    assert Experiment(AGEING, record, Conditions(part=(100, 350))).runs[0].times[0] == pytest.approx(32.0)
    with open_lazily(tmp_path / "a.csv") as whole:
        assert whole.slice(50, 60).clock_time == pytest.approx(31.0)
        part = Part(whole, 100, 350, ["x"])
        assert part.about.clock_time == pytest.approx(32.0)
        for suffix in (".h5", ".mat", ".tdms", ".csv", ".lvm"):
            write(part, tmp_path / f"cut{suffix}")
            assert read(tmp_path / f"cut{suffix}").clock_time == pytest.approx(32.0)
    assert_true(identify(AGEING, read(tmp_path / "cut.h5")), a=A, b=B)


def test_given_a_clock_beyond_the_digits_of_a_step_then_a_table_is_written_from_zero(tmp_path: Path) -> None:
    record = Record.from_arrays(1e6, {"x": np.arange(50.0)}, clock_time=1.7e9)
    write(record, tmp_path / "a.csv")
    back = read(tmp_path / "a.csv")
    assert (back.rate, back.clock_time) == (1e6, 0.0)


def test_given_no_clock_then_t_counts_from_the_first_sample_and_it_is_said() -> None:
    found = identify(AGEING, Record.from_arrays(RATE, {"x": decay(times(30.0))}))
    assert_true(found, a=A + 30 * B, b=B)
    assert any("the value of a depends, counts from there" in words for words in found.warnings)


@pytest.mark.parametrize("clock", [1.7e9, -1.7e9])
def test_given_seconds_since_1970_then_t_counts_from_the_first_sample_and_it_is_said(clock: float) -> None:
    found = identify(AGEING, Record.from_arrays(RATE, {"x": decay(times(0.0))}, clock_time=clock))
    assert_true(found, a=A, b=B)
    assert any("too far from zero" in words and "the value of a depends" in words for words in found.warnings)


def test_given_seconds_since_midnight_then_they_are_the_model_s_t() -> None:
    clock = 500 * SAMPLES / RATE
    found = identify(AGEING, Record.from_arrays(RATE, {"x": decay(times(0.0))}, clock_time=clock))
    assert found.verdict == "fits"
    a, b = (found.parameters[name].value for name in "ab")
    assert b == pytest.approx(B, abs=1e-3)
    assert a + b * clock == pytest.approx(A, abs=1e-3)


@pytest.mark.parametrize("first", [0.0, 14.0])
def test_given_a_sweep_then_its_time_is_found_from_the_clock(tmp_path: Path, first: float) -> None:
    t = times(first)
    write_table(tmp_path / "a.csv", "t", t, swept(t))
    found = identify(SWEEP, read(tmp_path / "a.csv"))
    assert_true(found, a=1.0, drive_time=first)


def test_given_a_clock_that_is_a_little_off_the_sweep_then_the_sweep_s_time_is_found_all_the_same() -> None:
    record = Record.from_arrays(RATE, {"x": swept(times(14.0))}, clock_time=13.95)
    assert_true(identify(SWEEP, record), a=1.0, drive_time=14.0)


def test_given_a_sweep_and_a_clock_since_1970_then_it_is_said_where_its_time_is_looked_for() -> None:
    record = Record.from_arrays(RATE, {"x": swept(times(0.0))}, clock_time=1.7e9)
    found = identify(SWEEP, record)
    assert_true(found, a=1.0, drive_time=0.0)
    assert any("`drive_time` is looked for from zero" in words for words in found.warnings)


def test_given_a_drive_with_a_period_then_the_clock_says_nothing_of_its_phase() -> None:
    model = Model.from_equations({"x": "a*cos(3*t) - x"}, {"a": {"guess": 1.0}}, outputs={"x": "x"})
    t = times(0.0)
    x = (np.cos(3 * t + 1) + 3 * np.sin(3 * t + 1)) / 10 + np.exp(-t)
    experiment = Experiment(model, Record.from_arrays(RATE, {"x": x}, clock_time=1.7e9))
    assert experiment.runs[0].phase == "unknown"
    assert experiment.warnings == []
    assert abs(experiment.guesses()[0, experiment.model.index("drive_time")]) <= np.pi / 3


def test_given_the_drive_s_own_time_then_the_clock_does_not_count() -> None:
    x = decay(times(30.0))
    told = Record.from_arrays(RATE, {"x": x}, drive_time=30.0, clock_time=5.0)
    assert Experiment(AGEING, told).runs[0].times[0] == 30.0
    phase = Record.from_arrays(RATE, {"x": x}, excitation=Excitation(2.0, 1.0, np.pi), clock_time=5.0)
    assert Experiment(AGEING, phase).runs[0].times[0] == pytest.approx(0.25)


def test_given_two_records_then_the_second_is_found_from_its_own_clock() -> None:
    records = [
        Record.from_arrays(RATE, {"x": decay(times(first))}, clock_time=first) for first in (30.0, 10.0)
    ]
    experiment = Experiment(AGEING, records)
    assert [run.times[0] for run in experiment.runs] == [30.0, 0.0]
    assert experiment.guesses()[1, experiment.model.index("drive_time")] == 10.0
    assert_true(identify(AGEING, records), a=A, b=B)
