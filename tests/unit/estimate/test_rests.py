"""An accelerometer in one of two wells: the search begins in the well, not on the hill between them."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

from analysis import Model, Record, identify

FORCE = "-c*v + k1*x - k3*x**3 + f"
RATE, C, K1, K3 = 20.0, 0.15, 2.0, 2.0


def test_given_an_accelerometer_in_one_well_then_the_search_looks_there_as_well() -> None:
    rng = np.random.default_rng(1)
    tones, phases = rng.uniform(0.1, 1.0, 40), rng.uniform(0, 2 * np.pi, 40)

    def force(at: np.ndarray | float) -> np.ndarray:
        return np.asarray(0.067 * np.cos(2 * np.pi * np.multiply.outer(at, tones) + phases).sum(axis=-1))

    def total(at: np.ndarray | float, x: np.ndarray, v: np.ndarray) -> np.ndarray:
        return -C * v + K1 * x - K3 * x**3 + force(at)

    t = np.arange(600) / RATE
    x, v = solve_ivp(
        lambda at, z: [z[1], float(total(at, *z))], (0, t[-1]), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-12
    ).y
    assert x.min() > 0  # it stays in its well
    a = total(t, x, v)
    a = a + 0.02 * a.std() * rng.standard_normal(len(t))
    model = Model.from_equations(
        {"x": "v", "v": FORCE},
        {"c": {"guess": 0.2, "lower": 0.0}, "k1": {"guess": 3.0}, "k3": {"guess": 3.0}},
        inputs={"f": "measured"},
        outputs={"a": FORCE},
    )
    result = identify(model, Record.from_arrays(RATE, {"a": a, "f": force(t)}))
    assert result.verdict == "fits"
    for name, truth in (("c", C), ("k1", K1), ("k3", K3)):
        assert abs(result.parameters[name].value - truth) < 4 * result.parameters[name].stderr
