"""What is offered as an orbit is confirmed, and its multipliers come with an error that holds."""

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.orbits.autonomous import autonomous_orbits
from analysis.orbits.orbit import Orbits
from analysis.orbits.search_space import channel_space
from tests.chaotic import roessler


def found_in(x: np.ndarray, longest: int, epsilon: float | None = None) -> Orbits:
    space = channel_space(x, np.ones(len(x), dtype=bool))
    view = space.view
    return autonomous_orbits(
        view.points, longest=longest, epsilon=epsilon, scale=view.scale, noise=view.noise, views=space.views
    )


def test_given_one_channel_without_a_drive_then_the_multiplier_is_told_and_its_error_holds() -> None:
    found = found_in(roessler(12_000, 0.2)[0], 70)
    first = found.orbits[0]
    assert first.period * 0.2 == pytest.approx(5.8811, abs=0.01)
    assert first.confirmed
    assert abs(first.multipliers[0].real + 2.404) < 2 * first.multiplier_stderr
    assert first.multiplier_stderr < 0.15


@pytest.mark.parametrize("kind", ["torus", "noise"])
def test_given_what_has_no_orbits_then_close_returns_are_not_confirmed(kind: str) -> None:
    t = 2 * np.pi * np.arange(6000) / 25
    x = np.sin(t) + 0.5 * np.sin(0.618034 * t)
    if kind == "noise":
        x = lfilter([1.0], [1.0, -1.88, 0.9409], np.random.default_rng(4).standard_normal(6500))[500:]
    found = found_in(x, 200, 0.02)
    assert found.unconfirmed
    assert len(found) == 0
    assert all(o.doubt for o in found.unconfirmed)
    assert any("not confirmed" in text for text in found.messages)


def test_given_a_periodic_record_then_its_orbit_is_confirmed_and_its_stability_unknown() -> None:
    t = 2 * np.pi * np.arange(5000) / 30.3
    found = found_in(np.exp(np.sin(t)), 40)
    assert [o.confirmed for o in found] == [True]
    assert found.orbits[0].period == pytest.approx(30.3, rel=1e-3)
    assert len(found.orbits[0].multipliers) == 0
    assert "throughout" in found.orbits[0].doubt
