"""Parts of the checks beside formulas worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.experiment.curves import MeasuredCurve
from analysis.model import Model
from analysis.validation.bifurcation import Sweep, _diagram, _frequency_factor
from analysis.validation.curves import check_curves
from analysis.validation.held import check_held
from analysis.validation.section import section_distance

M, C, K = 0.5, 0.4, 20.0


def linear() -> Model:
    return Model.from_equations(
        {"x": "v", "v": "(-c*v - k*x + f)/m"}, {"m": M, "c": C, "k": K}, inputs={"f": "measured"}
    )


def curve(**given: Any) -> tuple[MeasuredCurve, np.ndarray, np.ndarray, np.ndarray]:
    """The exact response; the force U that it needs and its derivatives by frequency (Hz) and amplitude."""
    frequency, amplitude = np.array([0.6, 1.0, 1.4]), np.array([0.2, 0.5, 0.1])
    w = 2 * np.pi * frequency
    stiffness = K - M * w**2 + 1j * w * C
    U, by_f = stiffness * amplitude, 2 * np.pi * (-2 * M * w + 1j * C) * amplitude
    given = {"phase": -np.angle(U), "force": np.abs(U), **given}
    return MeasuredCurve(frequency, amplitude, output="x", **given), U, by_f, stiffness


ERRORS = {
    "frequency_error": np.array([1e-3, 2e-3, 1e-3]),
    "amplitude_error": np.array([0.01, 0.02, 0.003]),
    "phase_error": np.array([0.02, 0.01, 0.03]),
    "force_error": np.array([0.05, 0.1, 0.2]),
}


def test_given_force_and_phase_then_what_is_missed_is_the_distance_of_two_complex_forces() -> None:
    _, U, by_f, by_a = curve()
    told = 1.1 * U * np.exp(0.2j)  # a lag smaller by 0.2
    measured, *_ = curve(phase=-np.angle(told), force=np.abs(told), **ERRORS)
    found = check_curves(linear(), {}, [measured])
    miss = np.abs(U - told)
    assert found.numbers["missed share"] == pytest.approx(
        np.linalg.norm(miss) / np.linalg.norm(told), rel=1e-6
    )
    error = np.sqrt(
        ERRORS["force_error"] ** 2
        + (np.abs(told) * ERRORS["phase_error"]) ** 2
        + np.abs(by_f * ERRORS["frequency_error"]) ** 2
        + np.abs(by_a * ERRORS["amplitude_error"]) ** 2
    )
    assert found.numbers["over errors"] == pytest.approx(np.sqrt(np.mean((miss / error) ** 2)), rel=1e-4)
    assert [row["missed"] for row in found.rows] == pytest.approx(miss, rel=1e-6)


def test_given_the_force_alone_then_sizes_are_compared_and_errors_count_along_it() -> None:
    _, U, by_f, by_a = curve()
    measured, *_ = curve(phase=np.full(3, np.nan), force=0.9 * np.abs(U), **ERRORS)
    found = check_curves(linear(), {}, [measured])
    unit = U / np.abs(U)
    error = np.sqrt(
        ERRORS["force_error"] ** 2
        + (by_f * ERRORS["frequency_error"] * unit.conj()).real ** 2
        + (by_a * ERRORS["amplitude_error"] * unit.conj()).real ** 2
    )
    assert found.numbers["missed share"] == pytest.approx(0.1, rel=1e-6)
    over = np.sqrt(np.mean((0.1 * np.abs(U) / error) ** 2))
    assert found.numbers["over errors"] == pytest.approx(over, rel=1e-4)


def test_given_the_phase_alone_then_the_force_across_it_is_what_is_missed() -> None:
    _, U, by_f, by_a = curve()
    measured, *_ = curve(phase=-np.angle(U) + 0.1, force=np.full(3, np.nan), **ERRORS)
    found = check_curves(linear(), {}, [measured])
    assert found.numbers["missed share"] == pytest.approx(np.sin(0.1), rel=1e-6)
    across = 1j * np.exp(-1j * (-np.angle(U) + 0.1))
    error = np.sqrt(
        (np.abs(U) * ERRORS["phase_error"]) ** 2
        + (by_f * ERRORS["frequency_error"] * across.conj()).real ** 2
        + (by_a * ERRORS["amplitude_error"] * across.conj()).real ** 2
    )
    over = np.sqrt(np.mean((np.abs(U) * np.sin(0.1) / error) ** 2))
    assert found.numbers["over errors"] == pytest.approx(over, rel=1e-4)


@pytest.mark.parametrize("factor", [1.0, 2 * np.pi])
def test_given_the_drive_frequency_as_parameter_then_the_diagram_keeps_its_period(factor: float) -> None:
    """A linear answer seen once a period is one point; seen at any other period it is many."""
    turns = "2*pi*q" if factor == 1.0 else "q"
    model = Model.from_equations({"x": "v", "v": f"-x - 2*v + cos({turns}*t)"}, {"q": 1.2})
    base = factor / 1.2
    assert _frequency_factor(1.2, base) == factor and _frequency_factor(1.2, 1.01 * base) is None
    subject = SimpleNamespace(states=np.zeros((2, 3)), forced=True, base=base)
    sweep = Sweep("q", 1.0, 1.5)
    grid, points = _diagram(cast(Any, subject), model, sweep, 1.2, SILENT)
    w = grid * (2 * np.pi / factor)
    assert (grid[0], grid[-1]) == (1.0, 1.5)
    expected = (1 / (1 - w**2 + 2j * w)).real  # at t = 0, T, 2 T ...
    assert points == pytest.approx(np.broadcast_to(expected, points.shape), abs=1e-4)


@pytest.mark.parametrize(("errors", "status"), [(2.4, "passed"), (2.6, "failed")])
def test_given_a_miss_of_some_errors_then_below_two_and_a_half_it_is_none(errors: float, status: str) -> None:
    _, U, *_ = curve()
    force = np.abs(U)
    nothing = {"frequency_error": np.zeros(3), "amplitude_error": np.zeros(3), "phase_error": np.zeros(3)}
    measured, *_ = curve(force=1.2 * force, force_error=0.2 * force / errors, **nothing)
    found = check_curves(linear(), {}, [measured])
    assert found.numbers["over errors"] == pytest.approx(errors) and found.status == status


def test_given_two_clouds_then_their_energy_distance_and_the_largest_of_a_part_to_the_rest() -> None:
    rng = np.random.default_rng(4)
    measured, own = rng.normal(size=(2, 7)), rng.normal(size=(2, 30)) + 0.2

    def mean(a: np.ndarray, b: np.ndarray) -> float:
        pairs = [np.hypot(*(p - q)) for p in a.T for q in b.T]
        return float(np.mean(pairs))

    def distance(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.sqrt(2 * mean(a, b) - mean(a, a) - mean(b, b)))

    found, largest = section_distance(measured, own, 10)
    assert found == pytest.approx(distance(measured, own))
    parts = [(own[:, :10], own[:, 10:]), (own[:, 10:20], own[:, [*range(10), *range(20, 30)]])]
    parts += [(own[:, 20:], own[:, :20])]
    assert largest == pytest.approx(max(distance(a, b) for a, b in parts))


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (
            SimpleNamespace(driven=None, forced=False, reason="The record does not say its drive."),
            "does not say",
        ),
        (SimpleNamespace(driven=object(), forced=False, reason=""), "those of a driven motion"),
    ],
)
def test_given_no_drive_then_held_orbits_cannot_be_looked_for_and_the_reason_is_said(
    subject: Any, words: str
) -> None:
    found = check_held(subject, [cast(Any, object())])
    assert found.status == "not possible" and words in found.sentence
