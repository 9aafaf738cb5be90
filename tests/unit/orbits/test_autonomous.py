"""Recurrence histogram and periodic orbits of systems without a drive."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.orbits.autonomous import autonomous_orbits, mean_turn
from analysis.orbits.orbit import Orbits
from analysis.orbits.recurrence import recurrence
from analysis.reconstruct.embedding import delay_coordinates
from tests.chaotic import THESIS_LORENZ, lorenz, roessler


@pytest.fixture(scope="module")
def record() -> np.ndarray:
    return lorenz(20_000, 0.025, THESIS_LORENZ)


@pytest.fixture(scope="module")
def found(record: np.ndarray) -> Orbits:
    return autonomous_orbits(record)


def _variational(t: float, y: np.ndarray) -> np.ndarray:
    s, r, b = THESIS_LORENZ
    x, v, z = y[:3]
    jacobian = np.array([[-s, s, 0], [r - z, -1, -x], [v, x, -b]])
    flow = [s * (v - x), r * x - v - x * z, -b * z + x * v]
    return np.concatenate([flow, (jacobian @ y[3:].reshape(3, 3)).ravel()])


def true_orbit(point: np.ndarray, period: float) -> tuple[np.ndarray, float, float]:
    """Periodic point, period and largest multiplier by Newton's method across the flow."""
    for _ in range(12):
        start = np.concatenate([point, np.eye(3).ravel()])
        end = solve_ivp(_variational, (0, period), start, method="DOP853", rtol=1e-10, atol=1e-10).y[:, -1]
        matrix = end[3:].reshape(3, 3)
        flow, flow_end = _variational(0, start)[:3], _variational(0, end)[:3]
        system = np.block([[matrix - np.eye(3), flow_end[:, None]], [flow[None], np.zeros((1, 1))]])
        step = np.linalg.solve(system, np.append(point - end[:3], 0))
        point, period = point + step[:3], period + step[3]
        if np.max(np.abs(step)) < 1e-8:
            break
    return point, period, float(np.max(np.abs(np.linalg.eigvals(matrix))))


def test_given_a_lorenz_record_then_returns_cluster_at_the_known_lags(record: np.ndarray) -> None:
    scaled = record / np.ptp(record, axis=1)[:, None] / np.sqrt(3)
    histogram = recurrence(scaled, 0.005, 210, np.zeros(record.shape[1] + 1, np.int64))
    for lag in (110, 127, 130, 141, 197):
        near = histogram.counts[lag - 4 : lag + 5].max()
        assert near > 0
    assert any(abs(histogram.peaks - 37.6) < 1)  # the orbit once around each wing, 0.94 time units
    assert any(abs(histogram.peaks - 55.8) < 1)
    assert histogram.counts[20:30].max(initial=0) == 0  # no orbit is that short


def test_given_a_lorenz_record_then_its_orbits_are_those_of_the_equations(
    record: np.ndarray, found: Orbits
) -> None:
    assert len(found) > 20
    assert mean_turn(record) == pytest.approx(18.6, abs=0.6)
    inside, period_errors, ratios = [], [], []
    for orbit in found.orbits[:8]:
        point, period, multiplier = true_orbit(record[:, orbit.start], orbit.period * 0.025)
        period_errors.append(abs(period / 0.025 - orbit.period) / orbit.period)
        distance = np.sqrt(np.mean(((point - record[:, orbit.start]) / found.scale) ** 2))
        inside.append(distance <= orbit.error_bound)
        ratios.append(orbit.multipliers[0].real / multiplier)
    assert np.max(period_errors) < 2e-3
    assert np.mean(inside) >= 0.75
    assert np.median(np.abs(np.array(ratios) - 1)) < 0.05


def test_given_the_symmetric_system_then_the_shortest_orbit_is_found_once_and_the_next_as_a_pair(
    found: Orbits,
) -> None:
    shortest = [o for o in found if abs(o.period * 0.025 - 0.9408) < 0.01]
    pair = [o for o in found if abs(o.period * 0.025 - 1.3945) < 0.01]
    assert len(shortest) == 1
    assert shortest[0].multipliers[0].real == pytest.approx(4.41, rel=0.05)
    assert len(pair) == 2


def test_given_a_spiral_about_a_fixed_point_then_it_is_not_listed(found: Orbits) -> None:
    assert all(o.period > 30 for o in found)


@pytest.mark.parametrize("measured", ["states", "delay"])
def test_given_roessler_then_the_first_orbit_has_its_published_period_and_multiplier(measured: str) -> None:
    points = roessler(40_000, 0.1)
    if measured == "delay":
        points = delay_coordinates(points[0], 3, 15)
    orbits = autonomous_orbits(points, longest=400, scale=np.ptp(points, axis=1).max())
    first = orbits.orbits[0]
    assert first.period * 0.1 == pytest.approx(5.8811, abs=0.004)
    assert first.multipliers[0].real == pytest.approx(-2.404, rel=0.08)
    second = [o for o in orbits if abs(o.period * 0.1 - 11.7586) < 0.05]
    assert len(second) == 1  # and not twice the first


def test_given_noise_then_the_orbits_stay(record: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    noisy = record + 0.01 * record.std(axis=1, keepdims=True) * rng.standard_normal(record.shape)
    orbits = autonomous_orbits(noisy, maps=False)
    periods = np.array([o.period * 0.025 for o in orbits])
    for period in (0.9408, 1.3945, 1.8652):
        assert np.min(np.abs(periods - period)) < 0.01


def test_given_lost_samples_of_a_motion_about_a_distant_mean_then_span_and_orbits_stay(
    record: np.ndarray, found: Orbits
) -> None:
    lost = record + 1000.0
    lost[:, 5000:5003] = np.nan
    kept = autonomous_orbits(lost, maps=False)
    assert kept.scale == pytest.approx(np.ptp(record, axis=1))
    assert kept.noise == pytest.approx(found.noise, rel=0.05)
    every = sorted(o.period for o in (*found.orbits, *found.unconfirmed))
    assert len(kept.orbits) > 0.9 * len(every)


def test_given_a_drifting_record_then_nothing_closes_and_it_says_so() -> None:
    t = np.arange(5000) / 20
    orbits = autonomous_orbits(np.stack([t + np.sin(t), np.cos(t) + t]))
    assert len(orbits) == 0
    assert any("do not support" in text for text in orbits.messages)


def test_given_noise_that_returns_after_the_longest_lag_then_the_closest_returns_are_still_counted() -> None:
    rng = np.random.default_rng(3)
    points = roessler(6000, 0.2)[:2]
    noisy = points + 0.05 * points.std(axis=1, keepdims=True) * rng.standard_normal(points.shape)
    for longest in range(28, 60, 3):
        found = autonomous_orbits(noisy, longest=longest, epsilon=0.05, maps=False)
        assert len(found.lowest) == longest + 1
