"""Motion along one closed curve, where many terms look alike; truth from integrations by SciPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis import monomials, oscillator
from analysis.base.record import Excitation, Record
from analysis.estimate.discovery import trials
from analysis.estimate.discovery.choice import Choice
from analysis.estimate.discovery.closed import period_of
from analysis.estimate.discovery.search import SearchResult, Stage
from analysis.estimate.discovery.selection import Selection, select_terms
from analysis.experiment import Experiment

Array = NDArray[np.float64]

STEP = 0.1


def path(force: Callable[[float, float, float], float], before: float, samples: int, step: float) -> Array:
    times = before + step * np.arange(samples)
    return np.asarray(
        solve_ivp(
            lambda t, u: [u[1], force(t, u[0], u[1])], (0, times[-1]), [1.0, 0.3], "DOP853", times,
            rtol=1e-10, atol=1e-10,
        ).y
    )  # fmt: skip


def rayleigh(_: float, x: float, v: float) -> float:
    return 1.1 * (v - v**3 / 3) - x


def terms_of(found: Selection) -> set[str]:
    return {found.library.candidates[n].term for n in found.kept}


def test_given_a_limit_cycle_a_chaotic_motion_and_a_decay_then_only_the_first_has_a_period() -> None:
    cycle = path(rayleigh, 100.0, 3000, STEP)
    upward = np.flatnonzero((cycle[0, :-1] < 0) & (cycle[0, 1:] >= 0))
    crossings = upward - cycle[0, upward] / (cycle[0, upward + 1] - cycle[0, upward])
    period = period_of(cycle)
    assert period is not None
    assert abs(period - np.polyfit(np.arange(len(crossings)), crossings, 1)[0]) < 0.01
    assert (
        period_of(path(lambda t, x, v: x - x**3 - 0.3 * v + 0.5 * np.cos(1.2 * t), 300.0, 3000, STEP)) is None
    )
    assert period_of(path(lambda t, x, v: -x - 0.02 * v, 0.0, 3000, STEP)) is None


def test_given_a_noisy_limit_cycle_then_its_terms_are_found_and_the_result_tells_of_the_curve(
    rng: np.random.Generator,
) -> None:
    x = path(rayleigh, 100.0, 2500, STEP)[0]
    record = Record.from_arrays(1 / STEP, {"x": x + 0.03 * x.std() * rng.normal(size=len(x))})
    found = select_terms(oscillator([*monomials("xv", 3), "v*abs(v)"], keep=()), record)
    assert terms_of(found) == {"x", "v", "v**3"}
    assert found.result.verdict == "fits"
    assert any("closed curve" in text for text in found.result.warnings)
    values = {found.library.candidates[n].term: found.result.parameters[n] for n in found.kept}
    assert abs(values["v"].value + 1.1) < 4 * values["v"].stderr < 0.6


def test_given_a_steady_response_to_a_tone_of_unknown_size_then_the_record_cannot_tell_the_terms(
    rng: np.random.Generator,
) -> None:
    step = 2 * np.pi / 1.3 / 60
    x = path(lambda t, x, v: 0.9 * np.cos(1.3 * t) - 0.2 * v - x - 0.8 * x**3, 300.0, 3000, step)[0]
    record = Record.from_arrays(
        1 / step,
        {"x": x + 0.05 * x.std() * rng.normal(size=len(x))},
        excitation=Excitation(1.3 / (2 * np.pi), 0.9, 0.0),
    )
    found = select_terms(oscillator([*monomials("xv", 3), "v*abs(v)"], "tone", {"w": 1.3}), record)
    assert found.result.verdict not in ("fits", "close")
    assert "closed curve" in " ".join([*found.result.reasons, *found.result.warnings])
    assert "no term has a probability" in found.caveat
    assert found.result.extra["caveat"] == found.caveat
    assert "probability" not in found.result.extra


def test_given_a_fit_that_ended_before_its_equations_held_then_it_has_no_rank(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path that breaks its equations comes nearer to the samples than any motion: a search followed it."""
    motion = path(rayleigh, 100.0, 400, STEP)
    record = Record.from_arrays(1 / STEP, {"x": motion[0] + 0.03 * rng.normal(size=400)})
    library = oscillator(["x", "v", "v**3"], keep=())
    experiment = Experiment(library.model(), record)
    index = {n: experiment.model.index(n) for n in library.candidates}
    choice = Choice.of(experiment, frozenset(index.values()), frozenset(), {})
    values = np.zeros((1, len(experiment.model.parameters) + 6))
    values[:, index["k1"]] = 0.7
    subset, fits = frozenset(index.values()), trials.Trials(experiment, choice, 100)
    whole = fits.fit(subset, values, (motion,))
    assert whole is not None
    assert whole.converged
    assert whole.values[0, index["c3"]] == pytest.approx(1.1 / 3, abs=0.05)
    monkeypatch.setattr(trials, "_MOST_STEPS", 2)
    loose = fits.fit(subset, values, (motion,))
    assert loose is not None and not loose.held
    assert choice.criterion(loose) == np.inf > choice.criterion(whole)
    begun = Stage(fits, {subset: loose})
    assert begun.ranked() == [] and begun.begun() == [loose]  # to search on from
    monkeypatch.setattr(trials, "_HELD", np.inf)
    early = fits.fit(subset, values, (motion,))
    assert early is not None
    assert not early.converged


def test_given_a_best_set_that_is_refuted_then_the_next_one_within_odds_of_150_takes_its_place() -> None:
    sets = [frozenset({0}), frozenset({1}), frozenset({2})]
    ranking = [
        trials.Trial(s, np.zeros((1, 3)), (), np.ones((1, 1)), cost, True, 1)
        for s, cost in zip(sets, (0.0, 4.0, 20.0), strict=True)
    ]
    choice = Choice(frozenset({0, 1, 2}), frozenset(), 1.0, {}, 100)
    evidence = {t.subset: t.misfit for t in ranking}
    found = SearchResult(ranking, evidence, choice, {}).without_best()
    assert found is not None
    assert found.best.subset == {1}
    assert found.refuted == (frozenset({0}),)
    assert set(found.evidence) == {frozenset({1}), frozenset({2})}
    assert found.without_best() is None
