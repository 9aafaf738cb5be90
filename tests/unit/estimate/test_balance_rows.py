"""Rows of a harmonic balance: operators against written-out matrices, blocks against the whole, memory."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest

from analysis.estimate.balance import rows
from analysis.estimate.balance.rows import OrbitRows, periodic_operators, smoothing_operators
from analysis.model import Model

MODEL = Model.from_equations({"x": "v", "v": "-c*v - k*x**3 + f*cos(t)"}, {"c": 0.2, "k": 1.0, "f": 3.0})


def orbit(count: int, pad: int, cycles: int) -> OrbitRows:
    period = 2 * np.pi * cycles
    dt = period / count
    times = dt * np.arange(count)
    tests = rows.TestFunctions.tapered(times, period, np.arange(4 * cycles + 1.0), 2 * np.pi)
    smooth, slope = smoothing_operators(count, pad, dt, 10 / (2 * np.pi))
    samples = 2 * np.cos(dt * np.arange(-pad, count + pad)) + 0.3
    inputs = np.empty((0, count))
    return OrbitRows(
        times, inputs, tests, [(0, smooth), (0, slope)], [samples], [0.01], {1: 0}, [1], [0], pad
    )


@pytest.mark.parametrize("highest", [None, 0.7])
def test_given_an_operator_then_it_is_the_matrix_that_its_columns_make(
    highest: float | None, rng: np.random.Generator
) -> None:
    count, pad = 41, 8
    for operator in (*smoothing_operators(count, pad, 0.1, highest), *periodic_operators(40, 0.1)):
        total = operator.count + 2 * operator.pad
        matrix = np.stack([operator.apply(unit) for unit in np.eye(total)], axis=1)
        weights = rng.normal(size=(70, operator.count))
        assert operator.transposed(weights) == pytest.approx(weights @ matrix, abs=1e-12)
        assert operator.of_constant == pytest.approx(matrix.sum(axis=1), abs=1e-12)
    t = 0.1 * np.arange(40)
    wave = np.sin(2 * np.pi * 3 * t / 4.0)
    slope = periodic_operators(40, 0.1)[1].apply(wave)
    assert slope == pytest.approx(6 * np.pi / 4 * np.cos(2 * np.pi * 3 * t / 4.0), abs=1e-11)


def test_given_few_numbers_at_once_then_rows_and_covariance_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values, offsets = MODEL.values(), np.array([0.1])

    def all_of(one: OrbitRows) -> list[np.ndarray]:
        jacobian = one.jacobian(MODEL, values, offsets, 0.2, [0, 1], [0])
        return [
            one.residual(MODEL, values, offsets, 0.2),
            *jacobian,
            one.covariance(MODEL, values, offsets, 0.2),
        ]

    whole = all_of(orbit(120, 10, 3))
    monkeypatch.setattr(rows, "_BLOCK", 700)
    monkeypatch.setattr(rows, "_STORED", 1000)
    for part, known in zip(all_of(orbit(120, 10, 3)), whole, strict=True):
        assert part == pytest.approx(known, rel=1e-10, abs=1e-12 * np.abs(known).max())
    by_samples = np.stack(
        [
            orbit_with(unit).residual(MODEL, values, offsets, 0.2) - whole[0]
            for unit in 1e-6 * np.eye(140)
        ],
        axis=1,
    )  # fmt: skip
    assert whole[4] == pytest.approx(0.01**2 * by_samples @ by_samples.T / 1e-12, rel=1e-3, abs=1e-9)


def orbit_with(change: np.ndarray) -> OrbitRows:
    one = orbit(120, 10, 3)
    one.data[0] = one.data[0] + change
    return one


def test_given_a_long_orbit_then_memory_grows_with_its_length_alone() -> None:
    values, offsets = MODEL.values(), np.zeros(1)
    one = orbit(12_800, 200, 10)
    MODEL.kernels().prepare("rhs_many", "jac_many")
    tracemalloc.start()
    one.residual(MODEL, values, offsets, 0.0)
    one.jacobian(MODEL, values, offsets, 0.0, [0, 1], [0])
    one.covariance(MODEL, values, offsets, 0.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30e6  # a matrix [samples, samples] would be 1300e6, all rows at once three times this


@pytest.mark.parametrize("kind", [rows.TestFunctions.tapered, rows.TestFunctions.plain])
def test_given_an_equation_of_first_order_then_its_rows_vanish_on_the_exact_motion_and_follow_noise(
    kind: Callable[..., rows.TestFunctions],
) -> None:
    model = Model.from_equations({"z": "-a*z + f*cos(t)"}, {"a": 0.7, "f": 2.0})
    count, values, none = 96, model.values(), np.zeros(1)
    dt = 4 * np.pi / count
    times = dt * np.arange(count)
    exact = 2.0 / (1 + 0.7**2) * (0.7 * np.cos(times) + np.sin(times))
    tests = kind(times, 4 * np.pi, np.arange(7.0), 2 * np.pi)

    def of(samples: np.ndarray) -> OrbitRows:
        own = [(0, periodic_operators(count, dt)[0])]
        return OrbitRows(times, np.empty((0, count)), tests, own, [samples], [0.01], {}, [0], [0], 0)

    assert of(exact).residual(model, values, none, 0.0) == pytest.approx(np.zeros(len(tests)), abs=1e-10)
    assert np.abs(of(exact).residual(model, values, none, 0.3)).max() > 0.01
    by_samples = np.stack(
        [of(exact + unit).residual(model, values, none, 0.0) for unit in np.eye(count)], axis=1
    )
    noisy = of(exact).covariance(model, values, none, 0.0)
    assert noisy == pytest.approx(0.01**2 * by_samples @ by_samples.T, abs=1e-9)
    by_p, by_offset, by_shift = of(exact).jacobian(model, values, none, 0.0, [0, 1], [0])
    step = 1e-5
    for column, moved in (
        (by_p[:, 0], of(exact).residual(model, values + [step, 0.0], none, 0.0)),
        (by_p[:, 1], of(exact).residual(model, values + [0.0, step], none, 0.0)),
        (by_offset[:, 0], of(exact).residual(model, values, none + step, 0.0)),
        (by_shift, of(exact).residual(model, values, none, step)),
    ):
        assert column == pytest.approx(moved / step, abs=1e-3)
    assert np.abs(by_shift).max() > 0.1
