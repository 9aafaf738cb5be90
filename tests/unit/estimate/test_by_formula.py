"""Parts of the methods beside formulas worked out another way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy import sparse

from analysis.estimate.discovery.library import Shape
from analysis.estimate.discovery.scene import Scene
from analysis.estimate.finish.linearised import _stretch
from analysis.estimate.functions.beam.response import DENSE_LIMIT, real_modes
from analysis.estimate.functions.energetic.start import _test_functions


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


@pytest.mark.parametrize(("count", "window"), [(200, 20), (101, 10), (41, 30), (12, 1)])
def test_given_a_window_then_its_bells_stand_a_quarter_apart_and_integrate_their_derivatives_away(
    count: int, window: int
) -> None:
    dt = 0.1
    test, slope, curvature = (m.toarray() for m in _test_functions(count, dt, window))
    half = max(3, min(window, (count - 1) // 2))
    centres = test.argmax(axis=1)
    assert centres[0] == half and centres[-1] == count - 1 - half
    if count > 5 * half:
        assert np.mean(np.diff(centres)) == pytest.approx(half / 4, rel=0.04)
        assert np.ptp(np.diff(centres)) <= 1  # between whole samples
    t = dt * np.arange(count)
    for row, slopes, curvatures, c in zip(test, slope, curvature, centres, strict=True):
        s = (t - t[c]) / (half * dt)
        inside = np.abs(s) <= 1
        assert row == pytest.approx(np.where(inside, (1 - s**2) ** 4 * dt, 0.0), abs=1e-12)
        assert slopes == pytest.approx(np.where(inside, -8 * s * (1 - s**2) ** 3 / half, 0.0), abs=1e-12)
        bend = (-8 * (1 - s**2) ** 3 + 48 * s**2 * (1 - s**2) ** 2) / (half**2 * dt)
        assert curvatures == pytest.approx(np.where(inside, bend, 0.0), abs=1e-10)


@pytest.mark.parametrize("first", [0, 5])
def test_given_a_first_state_that_is_known_then_it_is_held_and_one_further_on_is_not(first: int) -> None:
    run = about(
        initial_known=np.array([True, False]),
        inputs=about(count=0),
        times=np.arange(30.0),
        outputs=np.zeros((1, 30)),
        input_noise=np.zeros(0),
    )
    piece = about(
        record=0, run=run, first=first, stop=30, times=run.times[first:], states=np.zeros((2, 30 - first))
    )
    unknowns = [about(index=3, record=-1), about(index=0, record=0), about(index=1, record=1)]
    fitted = about(unknowns=unknowns, inputs_estimated=False, values=np.zeros((2, 4)), sigma=np.ones((2, 1)))
    spread = np.array([2.0, 50.0])
    found = _stretch(cast(Any, fitted), cast(Any, piece), slice(0, 10), spread)
    assert found.spread == pytest.approx([2e-8, 50.0] if first == 0 else spread, rel=1e-12)
    assert found.free.tolist() == [0, 3] and found.columns.tolist() == [1, 0]  # not that of the other record
    assert found.outputs.shape == (1, 10) and found.times[0] == first and found.origin == 0.0
    assert _stretch(fitted, piece, slice(2, 10), spread).spread == pytest.approx(spread)


def test_given_a_range_of_a_shape_then_it_is_tried_else_all_sizes_and_what_the_record_visits() -> None:
    run = about(
        inputs=about(count=1, values=lambda times: np.array([np.linspace(-3.0, 7.0, 50)])), times=None
    )
    scene = about(
        _base=[about(smooth=np.array([np.linspace(0.2, 0.4, 9), np.ones(9)]))], experiment=about(runs=[run])
    )
    ranged = Scene._tried(scene, Shape(0.5, 2.5))
    assert ranged[0] == 0.5 and ranged[-1] == 2.5 and np.ptp(np.diff(ranged)) < 1e-12 and len(ranged) > 100
    for shape in (Shape(), Shape(None, 2.5), Shape(0.5, None)):
        free = Scene._tried(scene, shape)
        assert free[0] == -1e9 and free[-1] == 1e9 and np.all(np.diff(free) > 0)
        for bound in (0.2, 0.4, -3.0, 7.0):  # ends of the states' and the inputs' ranges
            assert np.abs(free - bound).min() < 1e-12
        assert np.sum((free >= 0.2) & (free <= 0.4)) >= 20


@pytest.mark.parametrize("asked", [4, DENSE_LIMIT + 1])
def test_given_a_chain_of_masses_then_its_modes_are_the_sines_of_the_closed_form(asked: int) -> None:
    n = DENSE_LIMIT + 1
    chain = sparse.diags_array([-np.ones(n - 1), np.full(n, 2.0), -np.ones(n - 1)], offsets=[-1, 0, 1])
    shapes = real_modes(chain.tocsc(), sparse.eye_array(n).tocsc(), asked)
    assert shapes.shape == (n, min(asked, n - 2))  # the iteration finds all but two
    sines = np.sqrt(2 / (n + 1)) * np.sin(np.pi * np.outer(np.arange(1, n + 1), np.arange(1, 5)) / (n + 1))
    assert np.abs(sines.T @ shapes[:, :4]) == pytest.approx(np.eye(4), abs=1e-6)
