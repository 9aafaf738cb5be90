"""A coil without its inductance: straight lines between the samples of its current imitate a part of it."""

from __future__ import annotations

import numpy as np

from analysis import Model, Record, identify

M, BL, C, K, R, L = 0.05, 8.0, 2.0, 5000.0, 3.5, 1e-3


def test_given_a_coil_without_its_inductance_then_the_errors_hold_what_the_reading_of_its_current_moves() -> (
    None
):
    """V = R i + L i' + Bl v by phasors: forty tones of the current after all transients have died away."""
    rng = np.random.default_rng(101)
    w = 2 * np.pi * np.sort(rng.uniform(5, 80, 40))
    t = np.arange(1000) / 400.0
    current = 0.045 * np.exp(1j * (w[:, None] * t + rng.uniform(0, 2 * np.pi, (40, 1))))
    admittance = BL**2 * 1j * w / (K - M * w**2 + 1j * w * C)
    i = current.sum(axis=0).real
    voltage = ((R + 1j * w * L + admittance)[:, None] * current).sum(axis=0).real
    voltage += 0.01 * voltage.std() * rng.standard_normal(len(t))
    model = Model.from_equations(
        {"x": "v", "v": f"(Bl*i - c*v - k*x)/{M}"},
        {"Bl": {"guess": 6.0}, "c": {"guess": 1.5}, "k": {"guess": 4000.0}, "R": {"guess": 2.5}},
        inputs={"i": "measured"},
        outputs={"V": "R*i + Bl*v"},
    )
    result = identify(model, Record.from_arrays(400.0, {"V": voltage, "i": i}))
    assert result.verdict == "close"
    assert any("counts as an error" in words for words in result.reasons)
    for name, truth in (("Bl", BL), ("c", C), ("k", K), ("R", R)):
        assert abs(result.parameters[name].value - truth) < 4 * result.parameters[name].stderr
