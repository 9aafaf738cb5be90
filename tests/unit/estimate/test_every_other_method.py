"""What must hold for every method, for those that give no list of parameters or none by the common finish:
units, the drive's time, gaps, several records, and what the data cannot split."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.identification import Identification
from analysis.base.record import Channel, Record
from analysis.estimate.methods import identify
from analysis.estimate.weak.recursive import RecursiveWeak
from analysis.model import Model

DRIVE, RATE, COUNT, NOISE, FIRST = 1.1, 20.0, 2000, 2e-3, 7.3
TRUTH = {"c": 0.3, "k": 1.5, "q": 0.8}
UNITS = [(1e-9, 1e-3), (1e6, 1e3)]


@lru_cache
def motion() -> np.ndarray:
    """x, v and force by SciPy, from the drive's time FIRST on."""

    def rate(t: float, z: np.ndarray) -> list[float]:
        x, v = z
        return [v, -0.3 * v - 1.5 * x - 0.8 * x**3 + 1.2 * np.cos(DRIVE * t)]

    times = FIRST + np.arange(COUNT) / RATE
    x, v = solve_ivp(rate, (times[0], times[-1]), [0.4, -0.2], t_eval=times, rtol=1e-9, atol=1e-11).y
    noisy = np.array([x, v]) + NOISE * np.random.default_rng(4).standard_normal((2, COUNT))
    return np.array([*noisy, 1.2 * np.cos(DRIVE * times)])


def record(length: float = 1.0, time: float = 1.0) -> Record:
    x, v, f = motion()
    channels = {"x": length * x, "v": length / time * v, "f": length / time**2 * f}
    return Record.from_arrays(RATE / time, channels, drive_time=FIRST * time)


def model(length: float = 1.0, time: float = 1.0) -> Model:
    scale = scales(length, time)
    force = f"{1.2 * length / time**2!r}*cos({DRIVE / time!r}*t)"
    free = {name: {"guess": 1.2 * value * scale[name]} for name, value in TRUTH.items()}
    return Model.from_equations({"x": "v", "v": f"-c*v - k*x - q*x**3 + {force}"}, free)


def scales(length: float, time: float) -> dict[str, float]:
    return {"c": 1 / time, "k": 1 / time**2, "q": 1 / (time * length) ** 2}


def live(one: Model, data: np.ndarray, rate: float, first: float) -> Identification:
    stream = RecursiveWeak(one, rate, ["x", "v"], drive_time=first)
    for block in np.array_split(data, 20, axis=1):
        stream.update(block)
    return stream.estimate()


@pytest.mark.parametrize(("length", "time"), UNITS)
def test_given_other_units_then_a_live_fit_gives_the_same_relative_answer(length: float, time: float) -> None:
    here = live(model(), motion()[:2], RATE, FIRST)
    there = live(
        model(length, time),
        motion()[:2] * np.array([[length], [length / time]]),
        RATE / time,
        FIRST * time,
    )
    for name, factor in scales(length, time).items():
        a, b = here.parameters[name], there.parameters[name]
        assert b.value / factor == pytest.approx(a.value, rel=1e-6)
        assert b.stderr / factor == pytest.approx(a.stderr, rel=1e-4)
        assert abs(a.value - TRUTH[name]) < 5 * a.stderr + 0.01 * TRUTH[name]


def test_given_a_pair_that_cannot_be_split_then_a_live_fit_has_infinite_errors() -> None:
    both = Model.from_equations(
        {"x": "v", "v": f"-c*v - k*x - q*x**3 + a*cos({DRIVE}*t) + b*cos({DRIVE}*t)"},
        {name: {"guess": 1.0} for name in ("c", "k", "q", "a", "b")},
    )
    found = live(both, motion()[:2], RATE, FIRST).parameters
    assert np.isinf(found["a"].stderr) and np.isinf(found["b"].stderr)
    assert found["a"].value + found["b"].value == pytest.approx(1.2, abs=0.02)
    assert np.isfinite(found["k"].stderr) and found["k"].value == pytest.approx(1.5, abs=0.03)


def surface(one: Record | list[Record], scale: tuple[float, float] = (1.0, 1.0)) -> Identification:
    length, time = scale
    factor = scales(length, time)
    spring = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x - q*x**3"},
        {name: {"guess": value * factor[name]} for name, value in TRUTH.items()},
        inputs={"f": "measured"},
    )
    return identify(spring, one, "surface", damping="c", drive="f", bins=60)


@pytest.mark.parametrize(("length", "time"), UNITS)
def test_given_other_units_then_a_surface_is_the_same(length: float, time: float) -> None:
    here, there = surface(record()), surface(record(length, time), (length, time))
    assert there.verdict == here.verdict == "close"
    a, b = here.curves["restoring force"], there.curves["restoring force"]
    assert np.array(b.x) / length == pytest.approx(np.array(a.x), rel=1e-6)
    assert np.array(b.y) * time**2 / length == pytest.approx(np.array(a.y), abs=1e-3)
    x = np.array(a.x)
    assert np.array(a.y) == pytest.approx(1.5 * x + 0.8 * x**3, abs=0.15)


def test_given_a_gap_and_a_second_record_then_a_surface_is_drawn_from_both() -> None:
    whole = record()
    lost = (np.arange(COUNT) > 700) & (np.arange(COUNT) < 900)
    broken = replace(
        whole, channels={n: Channel(np.where(lost, np.nan, c.data)) for n, c in whole.channels.items()}
    )
    single = surface(broken)
    x, y = np.array(single.curves["restoring force"].x), np.array(single.curves["restoring force"].y)
    assert y == pytest.approx(1.5 * x + 0.8 * x**3, abs=0.15)
    both = surface([broken, whole.cut(0, 1500)])
    assert both.residual.other["samples"] > single.residual.other["samples"] + 1300


@pytest.mark.parametrize(("length", "time"), UNITS)
def test_given_other_units_then_auto_gives_the_same_relative_answer(length: float, time: float) -> None:
    here = identify(model(), record().cut(0, 600), "auto")
    there = identify(model(length, time), record(length, time).cut(0, 600), "auto")
    assert there.verdict == here.verdict == "fits"
    for name, factor in scales(length, time).items():
        a, b = here.parameters[name], there.parameters[name]
        assert abs(b.value / factor - a.value) < 0.1 * a.stderr
        assert b.stderr / factor == pytest.approx(a.stderr, rel=0.03)
        assert abs(a.value - TRUTH[name]) < 4.5 * a.stderr
