"""Records whose sensors are not equally good: each counts by its own noise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify
from analysis.base.derive import calibrate
from analysis.base.errors import DataError
from analysis.experiment import Experiment
from analysis.experiment.conditions import Conditions
from analysis.experiment.noise_sharing import NoiseSharing

TRUTH = {"c": 0.12, "k": 4.0, "k3": 1.5}
MODEL = Model.from_equations(
    {"x": "v", "v": "-c*v - k*x - k3*x**3"},
    {"c": {"guess": 0.2}, "k": {"guess": 5.0}, "k3": {"guess": 1.0}},
    outputs={"x": "x"},
)


def ring_down(
    seed: int, level: float, first: float, samples: int = 600, dt: float = 0.05, **more: Any
) -> Record:
    t = np.arange(samples) * dt
    clean = solve_ivp(
        lambda _, y: [y[1], -0.12 * y[1] - 4.0 * y[0] - 1.5 * y[0] ** 3], (0, t[-1]), [first, 0.0], t_eval=t,
        rtol=1e-9, atol=1e-11,
    ).y[0]  # fmt: skip
    return Record.from_arrays(
        1 / dt, {"x": clean + level * np.random.default_rng(seed).standard_normal(samples)}, **more
    )


@pytest.mark.parametrize("method", ["path", "shooting"])
def test_given_a_good_record_beside_a_poor_one_then_it_is_worth_what_it_is_worth_alone(method: str) -> None:
    good, poor = ring_down(1, 0.002, 1.0), ring_down(2, 0.05, 1.3)
    both, alone = identify(MODEL, [good, poor], method), identify(MODEL, good, method)
    assert both.verdict == "fits"
    for name, truth in TRUTH.items():
        found, before = both.parameters[name], alone.parameters[name]
        assert abs(found.value - truth) < 4 * found.stderr
        assert 0.9 * before.stderr < found.stderr < 1.01 * before.stderr  # it was ten times that
    assert both.extra["noise by record"]["x"] == pytest.approx([0.002, 0.05], rel=0.1)


def test_given_coarse_samples_that_show_no_noise_then_the_residuals_tell_the_levels_apart() -> None:
    """Four samples a period, too few of them for differences of high order."""
    good, poor = (ring_down(s, level, 1.0, 200, 0.7) for s, level in ((3, 1e-3), (4, 2e-2)))
    assert Experiment(MODEL, [good, poor]).noise_sharing.apart == (None,)
    found = identify(MODEL, [good, poor], "path", finish=True)
    assert found.extra["noise by record"]["x"] == pytest.approx([1e-3, 2e-2], rel=0.2)


def test_given_records_of_one_sensor_then_they_share_its_noise_however_large_their_motions() -> None:
    records = [ring_down(s, 0.01, first) for s, first in ((5, 0.2), (6, 1.0), (7, 2.0))]
    experiment = Experiment(MODEL, records)
    assert experiment.noise_sharing.apart == (False,)
    levels = experiment.noise_sharing.variances(np.array([[6.0], [1.0], [2.0]]), np.full((3, 1), 100.0))
    assert levels == pytest.approx(0.03)
    parts = experiment.parts([(0, 0, 100), (0, 100, 200), (2, 0, 100)], own_phases=False)
    assert parts.noise_sharing.record == (0, 0, 2)


def test_given_levels_apart_then_parts_of_a_record_share_one_and_short_records_share_theirs() -> None:
    apart = NoiseSharing((0, 0, 1, 2, 3), (True,))
    squares, freedom = (
        np.array([[1.0], [3.0], [50.0], [4.0], [2.0]]),
        np.array([[40.0], [60.0], [50.0], [4.0], [8.0]]),
    )
    assert apart.variances(squares, freedom)[:, 0] == pytest.approx([0.04, 0.04, 1.0, 0.5, 0.5])
    assert np.isnan(apart.variances(np.zeros((5, 1)), np.zeros((5, 1)))).all()
    unknown = NoiseSharing((0, 1), (None,))
    much = np.full((2, 1), 100.0)
    assert unknown.decided(np.array([[100.0], [120.0]]), much).apart == (None,)
    assert unknown.decided(np.array([[100.0], [500.0]]), much).apart == (True,)


def test_given_a_record_that_knows_its_noise_then_that_is_what_it_counts_by() -> None:
    sure, other = ring_down(8, 0.01, 1.0, noise={"x": 0.01}), ring_down(9, 0.01, 1.3)
    experiment = Experiment(MODEL, [sure, other])
    assert experiment.sigma[0, 0] == 0.01 and np.isnan(experiment.sigma[1, 0])
    assert not experiment.noise_known and Experiment(MODEL, sure).noise_known
    said = Experiment(MODEL, [sure, other], Conditions(noise={"x": 0.02}))
    assert said.sigma == pytest.approx(np.full((2, 1), 0.02))  # what is said now holds
    found = identify(MODEL, replace(sure, channels={"x": replace(sure.channels["x"], noise=0.003)}), "path")
    assert any("times the noise given (0.003)" in reason for reason in found.reasons)
    halved = calibrate(sure.cut(0, 300), "x", -0.5, 1.0, "mm")
    assert halved.channels["x"].noise == pytest.approx(0.005)
    with pytest.raises(DataError, match="noise of a channel must be a positive number, not 0"):
        ring_down(8, 0.01, 1.0, 50, noise={"x": 0.0})
