"""An orbit counts as held when the completed model has been asked, and not before."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis import DataError, Progress, Step
from analysis.holding import completed
from analysis.holding.plant import ActuatorPath
from app.holding.work import (
    ELSEWHERE,
    NO_LOOP,
    UNASKED,
    UNCHECKED,
    HoldRequest,
    HoldWork,
    _not_tried,
)
from app.output import tried, write_json


def _work() -> HoldWork:
    """Two orbits that came through the holding, the second only as a limit cycle."""
    plant = SimpleNamespace(
        path=ActuatorPath(1.0, 0.0, 0.005), modes=(), channels=("x",), frequency=7.5, amplitude=1.5
    )
    model = SimpleNamespace(name="beam", states=("x", "v"))
    study: Any = SimpleNamespace(plant=plant, subject=None, model=model, profile=SimpleNamespace(key="beam"))
    work = HoldWork(None, study, HoldRequest(), Progress())  # type: ignore[arg-type]
    work._done = [
        {"number": 1, "verdict": UNCHECKED, "reason": "mean correction 0.1 %", "orbit": 1.0, "averaged": 2.0},
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
    assert (told["orbits"][0]["reason"] == UNASKED) == (not models)
    assert (told["orbits"][0]["orbit"] == 2.0) == (not models)  # nobody knows what the model misses


@pytest.mark.parametrize("fails", ["completed_models", "completed_orbit"])
@pytest.mark.parametrize("error", [DataError("No."), np.linalg.LinAlgError("singular")], ids=str)
def test_when_the_completed_model_cannot_be_computed_then_what_was_held_is_kept_and_told(
    monkeypatch: pytest.MonkeyPatch, fails: str, error: Exception
) -> None:
    def fail(*args: object) -> None:
        raise error

    monkeypatch.setattr(completed, "completed_models", lambda subject, plant: [1])
    monkeypatch.setattr(completed, fails, fail)
    work = _work()
    work.complete()
    told = work.result([], "")["orbits"][0]
    assert (told["verdict"], told["reason"]) == ("held", UNASKED)


def test_when_a_result_cannot_be_written_then_its_sentence_is_kept_and_nothing_is_lost(
    tmp_path: Path,
) -> None:
    problems = ["The drive was stopped."]
    missing = tmp_path / "gone" / "held.json"
    assert tried(lambda: write_json(str(missing), {"held": 1}), problems) is None
    assert len(problems) == 2 and str(missing) in problems[1]
    assert tried(lambda: 3, problems) == 3 and len(problems) == 2


def test_when_orbits_are_held_then_the_bar_goes_by_the_time_that_they_should_take() -> None:
    """15 s of test, 2 + 8 s and 6 + 8 s: it was 0.03 of the way after half of the time."""
    work, steps = _work(), list[Step]()
    work._progress = Progress(steps.append)
    study: Any = work._study
    study.targets, study.wait, study.plant.rate = [0, 1], [15.0, np.inf].__getitem__, 100.0
    work._request = HoldRequest(60, 45.0)
    work._expect([0, 1])
    bench: Any = SimpleNamespace(status=lambda: None)
    work._bench = bench
    for place, seconds in ((0, 5.0), (0, 60.0), (1, 7.0)):
        work._place, work._passed = place, 0.0
        rows = np.zeros((1, round(100 * seconds)))
        stretch: Any = SimpleNamespace(samples=rows, command=rows[0])
        work._looked(stretch)
        work._stepped(Step(1.0, "holding"))
    assert [s.fraction for s in steps] == pytest.approx([20 / 39, (15 + 9.7) / 39, 32 / 39])


def test_given_an_orbit_that_no_loop_could_hold_then_no_delay_of_0_ms_is_asked_for() -> None:
    assert _not_tried(0.011, 0.018)["reason"] == "this orbit needs less than 11 ms; the loop has 18 ms"
    assert _not_tried(0.0, 0.018)["reason"] == NO_LOOP
