"""Inputs between their samples, where the search itself chose how to read them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analysis import Model, Record, identify
from analysis.base.progress import SILENT
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.input_reading import in_the_better_reading
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate

M, BL, C, K, R, L = 0.05, 8.0, 2.0, 5000.0, 3.5, 1e-3


def test_given_a_coil_without_its_inductance_then_the_errors_hold_what_the_reading_of_its_current_moves() -> (
    None
):
    """Straight lines between the samples of the current imitate a part of the inductance.

    V = R i + L i' + Bl v by phasors: forty tones of the current after all transients have died away.
    """
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


@pytest.mark.parametrize(
    ("played", "chosen", "kept"), [("cubic", "linear", "auto"), ("hold", "hold", "hold")]
)
def test_given_a_reading_that_the_search_chose_then_the_one_that_follows_the_samples_better_is_kept(
    played: str, chosen: str, kept: str
) -> None:
    """A jump in time may make straight lines look better than the smooth force that there was."""
    rng = np.random.default_rng(7)
    t = np.arange(500) * 0.05
    lines, phases = rng.uniform(0.1, 1.5, (20, 1)), rng.uniform(0, 2 * np.pi, (20, 1))
    force = np.cos(2 * np.pi * lines * t + phases).sum(axis=0)
    model = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.2}, "k": {"guess": 4.0}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    driven = Inputs.from_samples(0.0, 0.05, force[None], played)
    z = simulate(model, t, np.array([0.5, 0.0]), {}, driven, rtol=1e-9, atol=1e-11).states
    x = z[0] + 0.002 * z[0].std() * rng.standard_normal(len(t))
    given = Experiment(model, Record.from_arrays(20.0, {"x": x, "f": force}))
    other = Experiment(model, given.records, replace(given.conditions, inputs=chosen, denoise=False))
    fitted = fit(other, Start("shooting", other.guesses(), [z]))
    found = in_the_better_reading(given, fitted, SILENT)
    assert found.experiment.conditions.inputs == kept
    said = fit(other, Start("shooting", other.guesses(), [z]))
    assert in_the_better_reading(other, said, SILENT) is said  # what a person said is not changed
