"""Parts of the validation that decide or draw something, numbers by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.orbits.orbit import PeriodicOrbit
from analysis.reconstruct.exponents import LargestExponent
from analysis.validation import exponents, orbits
from analysis.validation.section import _panels


def exponent(value: float) -> LargestExponent:
    return LargestExponent(value, 0.001, "rosenstein", np.zeros(2), np.zeros(2), (0.0, 1.0), 1, "")


@pytest.mark.parametrize(
    ("twin", "others", "status"),
    [
        (0.101, [9.0] * 5, "passed"),  # as close as this the scatter of other records is not asked for
        (0.2, [0.05, 0.12, 0.08, 0.15, 0.1], "passed"),  # records of the model's motion differ as much
        (0.2, [0.2, 0.201, 0.199, 0.2, 0.202], "failed"),
        (0.2, [0.1, 0.2], "doubtful"),  # too few to tell
    ],
)
def test_given_exponents_that_differ_then_other_records_of_the_model_tell_whether_that_is_chance(
    monkeypatch: pytest.MonkeyPatch, twin: float, others: list[float], status: str
) -> None:
    values = iter([0.1, twin, *others])
    monkeypatch.setattr(exponents, "_estimate", lambda *_: exponent(next(values)))
    monkeypatch.setattr(exponents, "_panel", lambda *_: None)
    subject: Any = SimpleNamespace(
        driven=True, fading="", forced=True, escapes=False, twin=True, unit="s", states=None, base=10.0,
        other_twins=[None] * len(others),
    )  # fmt: skip
    spectrum: Any = SimpleNamespace(exponents=np.array([0.1, -0.2]), stderr=np.array([0.01, 0.02]))
    found = exponents.check_exponents(subject, spectrum)
    assert found.status == status
    assert found.numbers["record"] == 0.1 and found.numbers["model_by_same_method"] == twin
    assert found.numbers["model_2"] == -0.2 and found.numbers["model_2_stderr"] == 0.02


def test_given_sections_then_both_are_drawn_over_the_same_ranges_with_some_room() -> None:
    subject: Any = SimpleNamespace(
        model=SimpleNamespace(states=("x", "v")), label=lambda name: f"{name} [m]", forced=True
    )
    measured, own = np.array([[0.0, 1.0], [5.0, 6.0]]), np.array([[0.5, 2.0], [4.0, 5.5]])
    for panel in _panels(subject, measured, own):
        assert panel.x_range == pytest.approx((-0.1, 2.1))
        assert panel.y_range == pytest.approx((3.9, 6.1))
        assert panel.title.endswith("once a period")


def test_given_an_orbit_of_the_record_then_the_models_is_sought_there_and_its_largest_multiplier_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    states = np.stack([np.arange(100.0), np.sin(np.arange(100.0))])
    orbit = PeriodicOrbit(10, 20.0, 1, np.nan, np.nan, np.array([10]))
    asked: dict[str, Any] = {}
    away = 0.0

    def periodic_orbit(_: Any, state: np.ndarray, length: float, **given: Any) -> Any:
        asked.update(given, state=state, length=length)
        return SimpleNamespace(
            converged=True, period=2.0, state=state, multipliers=np.array([0.1, -3.0, 0.5j])
        )

    def simulate(_: Any, times: np.ndarray, __: Any) -> Any:
        asked["times"] = times
        return SimpleNamespace(states=states[:, orbit.segment] + away * np.ptp(states, axis=1)[:, None])

    monkeypatch.setattr(orbits, "periodic_orbit", periodic_orbit)
    monkeypatch.setattr(orbits, "simulate", simulate)
    subject: Any = SimpleNamespace(states=states, dt=0.1, origin=5.0, base=2.0, forced=True)
    found = orbits._closed(subject, None, orbit)  # type: ignore[arg-type]
    assert found is not None and found.found and found.distance == 0.0
    assert found.multiplier == 3.0
    assert asked["start"] == 6.0 and asked["length"] == 2.0 and asked["free_period"] is False
    assert asked["along"][0, 0] == 10.0 and asked["along"].shape[1] == asked["segments"]
    assert asked["times"][0] == 6.0 and asked["times"][-1] == 8.0
    away = 0.4
    far = orbits._closed(subject, None, orbit)  # type: ignore[arg-type]
    assert far is not None and not far.found and far.distance == pytest.approx(0.4)
    late = PeriodicOrbit(81, 20.0, 1, np.nan, np.nan, np.array([81]))
    assert orbits._closed(subject, None, late) is None  # type: ignore[arg-type]  # its end was not recorded
