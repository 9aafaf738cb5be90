"""The force of a motion with a given fundamental: against closed forms, integration and differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import ModelError
from analysis.dynamics.imposed import ImposedMotions
from analysis.dynamics.tone_drive import driven_by_a_tone
from analysis.model import Model

BEAM = """
name = "Beam"
[states]
x = "v"
v = "(-c*v - k1*x - k2*x**2 - k3*x**3 + f)/m"
[inputs]
f = "measured"
[parameters]
m = 0.5
c = 0.2
k1 = 20.0
k2 = 4.0
k3 = 30.0
[outputs]
x = "x"
a = "(-c*v - k1*x - k2*x**2 - k3*x**3 + f)/m"
"""


def test_when_the_oscillator_is_linear_then_the_force_is_its_dynamic_stiffness() -> None:
    model = Model.from_toml(BEAM).with_values({"k2": 0.0, "k3": 0.0})
    w = 2 * np.pi * 1.3
    stiffness = 20.0 - 0.5 * w**2 + 0.2j * w
    found = ImposedMotions(model, "x").solve(model.values(), 1.3, 0.4)
    assert found is not None and found.force == pytest.approx(0.4 * stiffness, rel=1e-9)
    assert found.by_amplitude == pytest.approx(stiffness, rel=1e-9)
    assert found.by_frequency == pytest.approx(0.4 * (-w + 0.2j) * 2 * np.pi, rel=1e-9)
    seen = ImposedMotions(model, "a").solve(model.values(), 1.3, 0.4)  # an output with the force in it
    assert seen is not None and seen.force == pytest.approx(-0.4 / w**2 * stiffness, rel=1e-7)


def test_when_the_motion_is_unstable_then_it_is_found_and_integration_agrees() -> None:
    """Between the folds: from the state found, one period of the equations leads back to it."""
    model = Model.from_toml(BEAM)
    solver, p = ImposedMotions(model, "x"), model.values()
    found = solver.solve(p, 1.2, 0.5)
    assert found is not None and found.by_amplitude.real * found.force.real < 0  # the force falls

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        force = (found.force * np.exp(2j * np.pi * 1.2 * t)).real
        return np.array([x[1], (-0.2 * x[1] - 20 * x[0] - 4 * x[0] ** 2 - 30 * x[0] ** 3 + force) / 0.5])

    first = found.states[:, 0]
    later = solve_ivp(slope, (0.0, 1 / 1.2), first, method="DOP853", rtol=1e-11, atol=1e-12).y[:, -1]
    assert np.abs(later - first).max() < 1e-9
    for name in ("c", "k1", "k3", "k2"):
        i = list(model.parameters).index(name)
        moved = p.copy()
        moved[i] += (step := 1e-5 * max(1.0, abs(p[i])))
        other = solver.solve(moved, 1.2, 0.5, found)
        assert other is not None
        assert (other.force - found.force) / step == pytest.approx(found.by_parameters[i], rel=1e-3)


def test_when_a_model_has_no_single_force_or_no_such_output_then_one_sentence() -> None:
    with pytest.raises(ModelError, match="no output 'y'"):
        ImposedMotions(Model.from_toml(BEAM), "y")
    with pytest.raises(ModelError, match="one measured input"):
        ImposedMotions(driven_by_a_tone(Model.from_toml(BEAM), 1.0, 0.1), "x")
