"""Models completed from records of a system that SciPy integrated and a filter of closed form disturbed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis import Completion, Conditions, DataError, Model, Record, complete, foretold
from analysis.estimate.discovery.completion import _pieces

Array = NDArray[np.float64]

DT, PERIOD, FINE = 0.5, 800, 4  # s, samples in a period of the drive, finer steps of the integration
TRUTH = {"m": 1.0, "d": 0.12, "k1": 1.0, "k3": 0.9}
FRICTION, SOFT, DISPERSION = 0.05, 0.25, 0.02
MODEL = Model.from_equations(
    {"y": "v", "v": "(u - d*v - k1*y - k3*y**3)/m"},
    {n: {"guess": 0.8 * v, "lower": 0.0} for n, v in TRUTH.items()},
    inputs={"u": "measured"},
    outputs={"y": "y"},
)


def disturbed(samples: Array, step: float, dispersion: float) -> Array:
    """A whole period behind a filter of phase -dispersion*omega^3: exact, line by line."""
    omega = 2 * np.pi * np.fft.rfftfreq(len(samples), step)
    return np.fft.irfft(np.fft.rfft(samples) * np.exp(-1j * dispersion * omega**3), len(samples))


def record(friction: float, dispersion: float, seed: int = 0) -> Record:
    """Two periods of the steady motion under a multisine."""
    rng = np.random.default_rng(seed)
    omega = 2 * np.pi * np.arange(14, 146, 2) / (PERIOD * DT)  # up to 2.3 of 6.3 rad/s
    phase = rng.uniform(0, 2 * np.pi, len(omega))

    def drive(t: float) -> float:
        return float(0.026 * np.sum(np.cos(omega * t + phase)))

    def rate(t: float, z: Array) -> list[float]:
        y, v = z
        return [v, drive(t) - 0.12 * v - y - 0.9 * y**3 - friction * v / np.hypot(v, SOFT)]

    fine = DT / FINE * np.arange(PERIOD * FINE)
    z, rows = np.zeros(2), np.zeros((2, 0))
    for _ in range(2):  # the first period settles
        found = solve_ivp(rate, (0, PERIOD * DT), z, "DOP853", [*fine, PERIOD * DT], rtol=1e-7, atol=1e-8)
        z, rows = found.y[:, -1], found.y[:, :-1]
    u = disturbed(np.array([drive(t) for t in fine]), DT / FINE, dispersion)[::FINE]
    y = disturbed(rows[0], DT / FINE, dispersion)[::FINE]
    y, u = np.tile(y, 2), np.tile(u, 2)
    return Record.from_arrays(1 / DT, {"u": u, "y": y + 0.002 * np.std(y) * rng.standard_normal(len(y))})


SAID = Conditions(inputs="bandlimited", denoise=False)


@pytest.fixture(scope="module")
def completed() -> Completion:
    return complete(MODEL, record(FRICTION, DISPERSION), "shooting", SAID)


def test_given_friction_and_a_filter_then_both_are_found_by_themselves(completed: Completion) -> None:
    added = [step.added for step in completed.steps]
    assert added[0] == "" and len(added) == 3
    assert any(a.startswith(("v/sqrt(v^2", "sign(v)")) for a in added)
    assert "dispersion of all channels" in added
    errors = [step.predicted["y"] for step in completed.steps]
    assert errors == sorted(errors, reverse=True)


def test_given_the_completed_model_then_its_numbers_are_true_within_their_errors(
    completed: Completion,
) -> None:
    found = completed.result.parameters
    truth = TRUTH | {"a1": FRICTION, "s1": SOFT, "dispersion": DISPERSION}
    assert set(found) == set(truth)
    assert all(abs(found[n].value - truth[n]) < 4 * found[n].stderr for n in truth)
    assert found["dispersion"].stderr < 0.1 * DISPERSION and found["a1"].stderr < 0.2 * FRICTION
    assert "a1*v/sqrt(v**2 + s1**2)" in completed.model.to_toml()


def test_given_another_record_then_the_completed_model_foretells_it_to_the_noise(
    completed: Completion,
) -> None:
    other = record(FRICTION, DISPERSION, seed=5)
    told = foretold(completed.model, other, 50, completed.conditions)["y"]
    noise = 0.002 * np.std(other["y"])
    assert np.std(told - other["y"][50:]) < 1.3 * noise


def test_given_a_complete_model_then_nothing_is_added() -> None:
    found = complete(MODEL, record(0.0, 0.0, seed=2), "shooting", SAID)
    assert [step.added for step in found.steps] == [""]
    assert found.result.verdict == "fits"


def test_given_a_short_record_then_it_is_refused() -> None:
    with pytest.raises(DataError, match="set aside"):
        complete(
            MODEL, Record.from_arrays(2.0, {"u": np.arange(60.0), "y": np.arange(60.0)}), "shooting", SAID
        )


def test_given_records_then_the_last_quarter_of_each_is_set_aside() -> None:
    experiment: Any = SimpleNamespace(runs=[SimpleNamespace(times=np.zeros(n)) for n in (80, 1001)])
    fitted, apart = _pieces(experiment)
    assert fitted == [(0, 0, 60), (1, 0, 751)] and apart == [(0, 60, 80), (1, 751, 1001)]
