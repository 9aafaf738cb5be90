"""A sine measured with noise: its amplitude and phase are unknowns that the motion knows better."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis import Identification, Model, Record, identify
from analysis.estimate.finish import periodic_drive

C, K, AMPLITUDE, OMEGA = 0.1, 4.0, 1.5, 1.7


def found(gain: float = 1.0) -> Identification:
    """Steady state and a transient of a linear oscillator in closed form, 5 % noise on the force."""
    rng = np.random.default_rng(3)
    t = np.arange(1500) * 0.05
    steady = gain * AMPLITUDE / (K - OMEGA**2 + 1j * C * OMEGA)
    own = -C / 2 + 1j * np.sqrt(K - C**2 / 4)
    x = (steady * np.exp(1j * OMEGA * t)).real + (0.8 * np.exp(own * t)).real
    force = AMPLITUDE * np.cos(OMEGA * t)
    record = Record.from_arrays(
        20.0,
        {
            "x": x + 0.01 * x.std() * rng.standard_normal(len(t)),
            "f": force + 0.05 * force.std() * rng.standard_normal(len(t)),
        },
    )
    model = Model.from_equations(
        {"x": "v", "v": "f - c*v - k*x"},
        {"c": {"guess": 0.15}, "k": {"guess": 3.5}},
        inputs={"f": "measured"},
        outputs={"x": "x"},
    )
    return identify(model, record, "path")


def test_given_a_sine_measured_with_noise_then_the_right_model_fits_with_errors_of_the_motion() -> None:
    result = found()
    assert result.verdict == "fits"
    for name, truth in (("c", C), ("k", K)):
        assert abs(result.parameters[name].value - truth) < 3.5 * result.parameters[name].stderr
    # the force read off its channel is 0.18 % uncertain, and with it K - OMEGA**2: that alone is 0.0020
    assert result.parameters["k"].stderr < 0.0010
    assert result.extra["drive"] == pytest.approx(0.5, abs=0.49)


def test_given_a_force_sensor_with_a_wrong_gain_then_the_motion_asks_for_another_drive() -> None:
    result = found(gain=0.97)
    assert result.verdict == "close" and result.extra["drive"] < 1e-6
    assert any("asks for another drive than f shows" in words for words in result.reasons)


def test_given_rows_then_the_step_of_the_drive_and_what_it_adds_are_those_of_joint_least_squares() -> None:
    """Unknowns a, and harmonics b with a unit prior: |e - J a - C b|^2 + |h + b|^2."""
    rng = np.random.default_rng(7)
    parts = [(rng.standard_normal((2, 9, 3)), rng.standard_normal((2, 9, 2)), rng.standard_normal((2, 9)))]
    parts.append(
        (rng.standard_normal((2, 6, 3)), rng.standard_normal((2, 6, 2)), rng.standard_normal((2, 6)))
    )
    parts[0][2][1, 4] = np.nan  # a missing sample, whose rows are zero
    parts[0][0][1, 4], parts[0][1][1, 4] = 0.0, 0.0
    moved = np.array([0.4, -0.7])
    fitted: Any = SimpleNamespace(
        estimate=np.zeros(3), experiment=SimpleNamespace(runs=[SimpleNamespace(fitted_variants=moved)])
    )
    regressions: Any = [SimpleNamespace(jacobian=J, errors=e) for J, _, e in parts]
    step, added = periodic_drive._best(fitted, [(0, 0), (0, 1)], [C for _, C, _ in parts], regressions)
    J, C = (np.concatenate([p[i].reshape(-1, p[i].shape[-1]) for p in parts]) for i in (0, 1))
    e = np.nan_to_num(np.concatenate([p[2].ravel() for p in parts]))
    whole = np.block([[J, C], [np.zeros((2, 3)), np.eye(2)]])
    joint = np.linalg.lstsq(whole, np.concatenate([e, -moved]), rcond=None)[0]
    assert step == pytest.approx(joint[3:])
    with_drive, without = np.linalg.inv(whole.T @ whole)[:3, :3], np.linalg.inv(J.T @ J)
    assert added == pytest.approx(with_drive - without)


@pytest.mark.parametrize(
    ("sizes", "steps", "rounds"),
    [
        ([0.01, 0.05], [], 0),  # the motion is blind to the drive
        ([0.01, 0.2], [[0.05, -0.09]], 0),
        ([0.01, 0.2], [[0.5, 0.0], [0.0, -0.11], [0.09, 0.0]], 2),
        ([0.2, 0.01], [[0.5, 0.5]] * 9, 6),
    ],
)
def test_given_a_drive_that_the_motion_tells_then_it_moves_until_a_tenth_of_its_error(
    monkeypatch: pytest.MonkeyPatch, sizes: list[float], steps: list[list[float]], rounds: int
) -> None:
    @dataclass(frozen=True)
    class Fit:
        made: int = 0
        inputs_estimated: bool = False
        input_covariance: Any = None
        experiment: Any = field(
            default_factory=lambda: SimpleNamespace(runs=[SimpleNamespace(variants=(1, 2))])
        )

    left = iter(steps)
    monkeypatch.setattr(periodic_drive, "linearisations", lambda _: [None])
    monkeypatch.setattr(periodic_drive, "regressions_of", lambda *_: ([None], True))
    monkeypatch.setattr(periodic_drive, "_columns", lambda *_: np.sqrt(np.array(sizes))[None, None])
    monkeypatch.setattr(periodic_drive, "_best", lambda *_: (np.array(next(left)), "covariance"))
    amounts: list[list[float]] = []

    def again(fitted: Any, amount: list[np.ndarray], progress: Any) -> Fit:
        amounts.extend(a.tolist() for a in amount)
        return Fit(fitted.made + 1)

    monkeypatch.setattr(periodic_drive, "_fitted", again)
    found: Any = periodic_drive.with_drive_fitted(Fit())  # type: ignore[arg-type]
    assert found.made == rounds and amounts == steps[:rounds]
    assert (found.input_covariance == "covariance") == bool(steps)  # also where six rounds were too few
