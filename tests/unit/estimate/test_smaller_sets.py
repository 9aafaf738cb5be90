"""Small sets of terms beside the favourite of a linearisation: on a closed orbit terms are alike."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from analysis.estimate.discovery.quadratic import Quadratic


def test_given_terms_alike_along_the_motion_then_the_best_small_set_is_proposed_although_it_looks_worse() -> (
    None
):
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 400)
    x, v = np.cos(angle) + 0.1 * np.cos(3 * angle), np.sin(angle)
    columns = np.stack([x, v, x**3, x**2 * v, x * v**2, v**3, v * np.abs(v), x**5], axis=1)
    target = columns[:, :2] @ [1.0, -0.5] + 1e-3 * rng.normal(size=len(x))
    # a linearisation that misjudges by 0.05: what it says of size is wrong, of sets of one size it is right
    curved = target + 0.05 * columns[:, 5] + 0.03 * columns[:, 7]
    information, linear = columns.T @ columns / 1e-6, columns.T @ curved / 1e-6
    quadratic = Quadratic(information, linear, frozenset(), 15.0)
    favourite = quadratic.best(frozenset(), quadratic.candidates)
    assert len(favourite) > 2
    leading = quadratic.leading(len(favourite), 5)
    assert leading[1][0] == {0, 1}
    assert [len(sets[0]) for sets in leading] == list(range(1, len(favourite) + 1))


def test_given_few_terms_then_the_leading_sets_are_those_that_trying_all_sets_finds(
    rng: np.random.Generator,
) -> None:
    design = rng.normal(size=(60, 9)) @ rng.normal(size=(9, 9))
    target = design @ rng.normal(size=9) + rng.normal(size=60)
    always, bound = frozenset({0}), {3: frozenset({8})}  # the last unknown comes with the fourth term
    quadratic = Quadratic(design.T @ design, design.T @ target, always, 1.0, bound)

    def left(terms: tuple[int, ...]) -> float:
        columns = design[:, sorted({0, *terms, *([8] if 3 in terms else [])})]
        return float(np.sum((target - columns @ np.linalg.lstsq(columns, target)[0]) ** 2))

    leading = quadratic.leading(3, 4)
    for size, sets in enumerate(leading, start=1):
        every = sorted(combinations(range(1, 8), size), key=left)
        assert sets == [frozenset(terms) for terms in every[:4]]


def test_given_terms_that_are_nearly_alike_then_sets_that_leave_more_numbers_possible_are_likelier() -> None:
    """The evidence against the integral over the coefficients, by quadrature."""
    information = np.array([[400.0, 380.0], [380.0, 500.0]])
    point = np.array([0.4, -0.2])
    quadratic = Quadratic(information, information @ point, frozenset(), 9.0, {}, np.array([2.0, 3.0]))
    grid = np.linspace(-2, 2, 2001)
    a, b = np.meshgrid(grid + point[0], grid + point[1], indexing="ij")
    away = np.stack([a - point[0], b - point[1]])
    misfit = np.einsum("iab,ij,jab->ab", away, information, away) - point @ information @ point
    prior = 1 / (np.pi * 2 * (1 + (a / 2) ** 2)) / (np.pi * 3 * (1 + (b / 3) ** 2))
    whole = np.sum(np.exp(-misfit / 2) * prior) * (grid[1] - grid[0]) ** 2
    assert quadratic.evidence(frozenset({0, 1})) == pytest.approx(-2 * np.log(whole), abs=0.05)
