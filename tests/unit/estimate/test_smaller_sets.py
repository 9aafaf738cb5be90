"""Small sets of terms beside the favourite of a linearisation: on a closed orbit terms are alike."""

from __future__ import annotations

import numpy as np

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
    assert frozenset({0, 1}) in quadratic.smaller(favourite, 8, np.inf)
    near = quadratic.smaller(favourite, 8, 0.0)
    assert all(quadratic.criterion(s) < quadratic.criterion(favourite) + 15.0 * len(favourite) for s in near)
    sizes = [len(s) for s in quadratic.smaller(favourite, 8, np.inf)]
    assert sizes and len(set(sizes)) == len(sizes) and max(sizes) < len(favourite)
