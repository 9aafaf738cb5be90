"""An orbit counts as held when the completed model has been asked, and not before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis import Progress
from analysis.holding import completed
from analysis.holding.plant import ActuatorPath
from app.holding.work import ELSEWHERE, UNCHECKED, HoldRequest, HoldWork


def _work() -> HoldWork:
    """Two orbits that came through the holding, the second only as a limit cycle."""
    plant = SimpleNamespace(
        path=ActuatorPath(1.0, 0.0, 0.005), modes=(), channels=("x",), frequency=7.5, amplitude=1.5
    )
    model = SimpleNamespace(name="beam", states=("x", "v"))
    study: Any = SimpleNamespace(plant=plant, subject=None, model=model, profile=SimpleNamespace(key="beam"))
    work = HoldWork(None, study, HoldRequest(), Progress())  # type: ignore[arg-type]
    work._done = [
        {"number": 1, "verdict": UNCHECKED, "reason": "mean correction 0.1 %"},
        {"number": 2, "verdict": "limit cycle", "reason": "corrections of 9 %"},
    ]
    held: Any = {1: SimpleNamespace(held=True), 2: SimpleNamespace(held=False)}
    work._held = held
    return work


@pytest.mark.parametrize(
    ("models", "away", "verdicts"),
    [([], 0.0, ["held", "limit cycle"]), ([1], 0.1, ["held", "limit cycle"]),
     ([1], 1e3, ["another orbit", "limit cycle"])],
)  # fmt: skip
def test_given_an_orbit_that_was_held_then_it_counts_when_it_has_been_compared(
    monkeypatch: pytest.MonkeyPatch, models: list[int], away: float, verdicts: list[str]
) -> None:
    rows = np.zeros((1, 4))
    found = completed.CompletedOrbit(np.zeros((2, 4)), rows, rows, np.array([-3.0]), np.array([0.1]), away)
    monkeypatch.setattr(completed, "completed_models", lambda subject, plant: models)
    monkeypatch.setattr(completed, "completed_orbit", lambda plant, held, models: found)
    work = _work()
    assert work.result([], "Cancelled.")["held"] == 0  # ended before that: no evidence for any check
    work.complete()
    told = work.result([], "")
    assert [o["verdict"] for o in told["orbits"]] == verdicts and told["held"] == verdicts.count("held")
    assert (told["orbits"][0]["reason"] == ELSEWHERE) == (verdicts[0] == "another orbit")
