"""Signs and ends that whole identifications forgive: each by hand, so that a slip in one of them shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.balance.rows import periodic_operators, smoothing_operators
from analysis.estimate.discovery.closed import _harmonics
from analysis.estimate.discovery.separation import _difference
from analysis.estimate.finish.high_pass import _CORNERS, _slow_parts
from analysis.estimate.functions.beam.observation import _through
from analysis.estimate.functions.beam.response import Modes, filtered
from analysis.estimate.functions.energetic.channels import motion_of
from analysis.estimate.search.global_search import GlobalSearch
from analysis.experiment import Experiment
from analysis.model import Model


@pytest.mark.parametrize("bounds", [{"lower": 0.0}, {"upper": 9.0}])
def test_given_a_parameter_with_one_bound_then_global_search_asks_for_the_other(
    bounds: dict[str, float],
) -> None:
    model = Model.from_equations({"x": "-a*x"}, {"a": {"guess": 1.0, **bounds}})
    record = Record.from_arrays(10.0, {"x": np.exp(-0.1 * np.arange(50))})
    with pytest.raises(DataError, match="a lower and an upper bound"):
        GlobalSearch().start(Experiment(model, record), SILENT)


def test_given_a_channel_then_what_each_filter_takes_away_is_its_recursion() -> None:
    """kept = exp(-corner * frequency * interval); begun at the mean of what the filter sees at first."""
    row, times, frequency = np.array([3.0, 1.0, 4.0, 1.0, 5.0]), 0.2 * np.arange(5), 2.0
    found = _slow_parts(row, times, frequency)
    for j, corner in enumerate(_CORNERS):
        kept = np.exp(-corner * frequency * 0.2)
        slow = np.mean(row[: max(int(1.0 / (1.0 - kept)), 1)])
        for i, sample in enumerate(row):
            slow = kept * slow + (1.0 - kept) * sample
            assert found[i, j] == pytest.approx(slow, rel=1e-12)
    assert _slow_parts(row[:1], times[:1], frequency) == pytest.approx(np.full((1, len(_CORNERS)), 3.0))


@pytest.mark.parametrize(("sigma", "seen"), [(0.02, 2), (0.049, 2), (0.053, 1), (0.2, 1)])
def test_given_a_harmonic_then_it_counts_from_18_times_its_variance_on(sigma: float, seen: int) -> None:
    """Amplitude 0.01 sqrt(2): its square is 2e-4; 2 sigma^2 / 500 times 18 reaches that at sigma = 0.053."""
    t = np.arange(500)
    row = 5 * np.cos(2 * np.pi * t / 50) + 0.01 * (np.cos(6 * np.pi * t / 50) + np.sin(6 * np.pi * t / 50))
    assert _harmonics(row, 50.0, sigma) == seen


def test_given_an_odd_number_of_samples_then_the_highest_harmonic_has_its_slope() -> None:
    t = 2 * np.pi / 9 * np.arange(9)
    slope = periodic_operators(9, 2 * np.pi / 9)[1].apply(np.cos(4 * t))
    assert slope == pytest.approx(-4 * np.sin(4 * t), abs=1e-12)


def test_given_samples_that_alternate_then_their_smoothed_slope_is_nothing() -> None:
    """At half the sampling rate a cosine has no slope at its samples, and a sine is not seen."""
    smooth, slope = smoothing_operators(400, 80, 0.1, 1.0)
    alternating = (-1.0) ** np.arange(560)
    assert np.max(np.abs(smooth.apply(alternating))) < 1e-4  # of what the fading ends leave
    assert np.max(np.abs(slope.apply(alternating))) < 1e-3


def test_given_laws_that_differ_to_one_side_then_a_larger_motion_is_the_same_one_magnified() -> None:
    """x = 1, -1/2, -1/2 and its double; the laws differ beyond 1.5 only, at the doubled first sample."""
    plain = Model.from_equations({"x": "-x"}, {})
    bent = Model.from_equations({"x": "-x - max(x - 1.5, 0)"}, {})
    motion = np.array([[1.0, -0.5, -0.5]])
    run = SimpleNamespace(times=np.arange(3.0), inputs=SimpleNamespace(count=0))
    scene = cast(
        Any,
        SimpleNamespace(
            experiment=SimpleNamespace(runs=[run], model=plain),
            motions=lambda _: [SimpleNamespace(smooth=motion)],
        ),
    )
    assert _difference(scene, plain, bent, 1.0) == 0.0
    assert _difference(scene, plain, bent, 2.0) == pytest.approx(np.sqrt(0.5**2 / 3) / np.sqrt(2.0))


def test_given_an_accelerometer_beside_another_sensor_then_it_alone_sees_the_force_at_once() -> None:
    """One mode of mass 1: y'' = g - 2 a y' - (a^2 + b^2) y, so what is passed on straight is g itself."""
    pole, dt = -0.3 + 2.0j, 0.01
    modes = Modes(
        np.array([pole]), np.array([[np.sqrt(1 / (2j * pole.imag))]]), np.array([0]), np.array([2.0])
    )
    state = cast(Any, SimpleNamespace(modes=modes, dpoles=np.zeros((0, 1)), dshapes=np.zeros((0, 1, 1))))
    samples = np.sin(3 * dt * np.arange(400)) + 0.5
    pair = filtered(np.array([pole]), samples, dt)

    def seen(*orders: int) -> np.ndarray:
        sensors, one = np.ones((len(orders), 1)), np.ones(1)
        return _through(state, sensors, {}, np.array(orders), one, {}, pair, samples)[0]

    place, speed, acceleration = seen(0, 1, 2)
    assert seen(2)[0] == pytest.approx(acceleration, abs=1e-12)
    assert acceleration == pytest.approx(samples - 0.6 * speed - abs(pole) ** 2 * place, abs=1e-9)


def test_given_a_velocity_alone_then_its_integral_is_the_displacement_and_nothing_is_refused() -> None:
    times = 0.05 * np.arange(400)
    velocity, nothing = np.cos(times), np.full(400, np.nan)
    still = SimpleNamespace(rhs_many=lambda times, state, inputs, p, rate: rate.fill(0.0))
    inputs = cast(Any, SimpleNamespace(values=lambda times: np.zeros((0, len(times)))))
    motion = motion_of(still, np.zeros(0), times, np.vstack([nothing, velocity]), inputs)
    assert motion.x == pytest.approx(np.sin(times) - np.mean(np.sin(times)), abs=1e-3)
    assert motion.v is not None and motion.smooth_v == pytest.approx(velocity, abs=1e-2)
    with pytest.raises(DataError, match="neither the displacement nor the velocity"):
        motion_of(still, np.zeros(0), times, np.vstack([nothing, nothing]), inputs)
