"""Poles, shapes and responses of modes, with their derivatives, against closed forms and quadrature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from analysis.estimate.functions.beam.response import (
    Modes,
    complex_modes,
    filtered,
    settled_modes,
    stepped,
)

POLES = np.array([-0.3 + 2.0j, -40.0 + 0.0j, -1e-4 + 0.0j, -2.0 - 30.0j])  # |pole dt| on both sides of one


def _quadrature(pole: complex, end: float, g: CubicSpline, power: int) -> complex:
    """Integral of (end - s)^power exp(pole (end - s)) g(s) from 0 to the end, by many points of Gauss."""
    point, weight = np.polynomial.legendre.leggauss(12)
    edges = np.linspace(0.0, end, 2001)
    half = 0.5 * np.diff(edges)[:, None]
    s = edges[:-1, None] + half * (1 + point)
    return complex(np.sum(half * weight * (end - s) ** power * np.exp(pole * (end - s)) * g(s)))


def test_given_a_step_then_the_response_is_that_of_first_order_and_so_is_its_slope() -> None:
    times = np.array([1e-3, 0.1, 0.49, 0.6, 3.0])
    value, slope = stepped(POLES, times)
    one = CubicSpline([0.0, 1.0, 2.0, 3.0], np.ones(4))
    for k, pole in enumerate(POLES):
        for i, t in enumerate(times):
            assert value[k, i] == pytest.approx(_quadrature(pole, t, one, 0), rel=1e-10)
            assert slope[k, i] == pytest.approx(_quadrature(pole, t, one, 1), rel=1e-10)


@pytest.mark.parametrize("dt", [0.01, 0.1])
def test_given_samples_then_the_response_to_their_spline_is_exact_for_any_step(dt: float) -> None:
    samples = np.array([0.3, -1.0, 0.7, 2.0, 0.0, 0.4, -0.2])
    g = CubicSpline(dt * np.arange(7), samples)
    response, slope = filtered(POLES, samples, dt)
    for k, pole in enumerate(POLES):
        for i in (1, 3, 6):
            assert response[k, i] == pytest.approx(_quadrature(pole, i * dt, g, 0), rel=1e-9, abs=1e-15)
            assert slope[k, i] == pytest.approx(_quadrature(pole, i * dt, g, 1), rel=1e-9, abs=1e-15)
    straight, _ = filtered(POLES, samples[:3], dt)
    line = CubicSpline([0.0, dt / 2, dt], [0.3, -0.35, -1.0])
    assert straight[0, 1] == pytest.approx(_quadrature(POLES[0], dt, line, 0), rel=1e-9)


def _stiff(rng: np.random.Generator) -> np.ndarray:
    A = rng.normal(size=(4, 4))
    return A @ A.T + np.eye(4)


def test_given_matrices_then_modes_solve_the_quadratic_problem_and_add_up_to_the_response() -> None:
    rng = np.random.default_rng(3)
    squared = np.array([1.0, 4.5, 20.0, 90.0])
    coupled = 0.1 * _stiff(rng)
    for damping in (None, np.diag([0.1, 5.0, 0.3, 0.2]), coupled):
        modes = complex_modes(squared, damping)
        C, K = np.zeros((4, 4)) if damping is None else damping, np.diag(squared)
        for pole, shape in zip(modes.poles, modes.shapes.T, strict=True):
            assert (pole**2 * np.eye(4) + pole * C + K) @ shape == pytest.approx(np.zeros(4), abs=1e-9)
        s = 0.4 + 1.7j  # the receptance from its residues
        exact = np.linalg.inv(s**2 * np.eye(4) + s * C + K)
        assert (modes.shapes / (s - modes.poles)) @ modes.shapes.T == pytest.approx(exact, abs=1e-10)
        assert np.sum(modes.twice) == 8
    overdamped = complex_modes(squared, np.diag([0.1, 5.0, 0.3, 0.2]))
    assert sorted(overdamped.poles[overdamped.kept][overdamped.twice == 1].real) == pytest.approx(
        sorted([-2.5 - np.sqrt(1.75), -2.5 + np.sqrt(1.75)])
    )


def test_given_a_change_of_a_matrix_then_poles_and_shapes_follow_to_first_order() -> None:
    rng = np.random.default_rng(4)
    mass, damping, stiffness = (_stiff(rng) for _ in range(3))
    base, squared = 0.1 * _stiff(rng), np.array([1.0, 4.5, 20.0, 90.0])
    modes = complex_modes(squared, base)
    poles, shapes = modes.sensitivity(mass, damping, stiffness)
    step = 1e-6
    moved = [_general(squared, base, sign * step, mass, damping, stiffness) for sign in (1, -1)]
    for k, i in enumerate(modes.kept):
        near = [found.poles[np.argmin(np.abs(found.poles - modes.poles[i]))] for found in moved]
        assert poles[k] == pytest.approx((near[0] - near[1]) / (2 * step), rel=1e-5)
        ends = []
        for found in moved:
            shape = found.shapes[:, np.argmin(np.abs(found.poles - modes.poles[i]))]
            ends.append(shape * np.sign((shape @ modes.shapes[:, i].conj()).real))
        assert shapes[:, k] == pytest.approx(
            (ends[0] - ends[1]) / (2 * step), abs=1e-4 * np.abs(shapes).max()
        )


def _general(
    squared: np.ndarray, damping: np.ndarray, step: float, dm: np.ndarray, dc: np.ndarray, dk: np.ndarray
) -> Modes:
    """All modes of the changed problem by its companion matrix, normalised as those of unit mass are."""
    M, C, K = np.eye(4) + step * dm, damping + step * dc, np.diag(squared) + step * dk
    inverse = np.linalg.inv(M)
    companion = np.block([[np.zeros((4, 4)), np.eye(4)], [-inverse @ K, -inverse @ C]])
    poles, vectors = np.linalg.eig(companion)
    shapes = vectors[:4]
    norm = np.einsum("ik,ij,jk->k", shapes, 2 * M, shapes) * poles + np.einsum(
        "ik,ij,jk->k", shapes, C, shapes
    )
    return Modes(poles, shapes / np.sqrt(norm), np.arange(8), np.ones(8))


def test_given_a_stiffness_that_rounding_made_negative_then_its_lowest_modes_are_kept() -> None:
    rng = np.random.default_rng(5)
    mass, stiffness = _stiff(rng), _stiff(rng)
    squared, shapes = settled_modes(stiffness, mass)
    assert np.all(np.diff(squared) > 0)
    assert shapes.T @ mass @ shapes == pytest.approx(np.eye(4), abs=1e-10)
    assert shapes.T @ stiffness @ shapes == pytest.approx(np.diag(squared), abs=1e-9)
    flat = np.diag([1.0, 2.0, 3.0, 1.0])
    flat[0, 3] = flat[3, 0] = 1.0 + 1e-16  # singular: one motion without stiffness
    found = settled_modes(flat, np.eye(4))[0]
    assert abs(found[0]) < 1e-9 and found[1:] == pytest.approx([2.0, 2.0, 3.0], rel=1e-6)


@pytest.mark.parametrize("unit", [1e-15, 1.0, 1e15])
def test_given_any_unit_of_time_then_modes_have_their_frequencies_and_the_stiffest_does_not_move(
    unit: float,
) -> None:
    squares, shapes = settled_modes(np.diag([9.0, 4.0, 1e30]) * unit**2, np.eye(3))
    assert squares[:2] == pytest.approx([4.0 * unit**2, 9.0 * unit**2], rel=1e-12)
    assert np.abs(shapes[:, :2]) == pytest.approx(np.array([[0, 1], [1, 0], [0, 0]]), abs=1e-12)
    assert squares[2] == pytest.approx(4e24 * unit**2)  # a part in 1e24 of the largest inverse
