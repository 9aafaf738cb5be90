"""Numbers that the data do not choose: a steady motion under one sine, with and without a transient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analysis.base.record import Record
from analysis.estimate.finish import rivals
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.methods import identify
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.model import Model

C, K, A, W = 0.2, 4.0, 1.0, 2.5
NAMES = ("c", "k", "a", "phase")


def model() -> Model:
    guesses = {"c": {"guess": 0.3, "lower": 0.0}, "k": {"guess": 3.0}, "a": {"guess": 0.8}}
    return Model.from_equations(
        {"x": "v", "v": f"-c*v - k*x + a*cos({W}*t + phase)"},
        {**guesses, "phase": {"guess": 0.3}},
        outputs={"x": "x"},
    )


def record(seed: int, transient: float) -> Record:
    """Closed form: the steady motion from any phase and a decaying one, 2 % noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(600) * 0.05
    steady = np.real(A / (K - W**2 + 1j * C * W) * np.exp(1j * (W * t + rng.uniform(0, 2 * np.pi))))
    free = transient * np.exp(-0.5 * C * t) * np.cos(np.sqrt(K - C**2 / 4) * t + 0.7)
    return Record.from_arrays(20.0, {"x": steady + free + 0.02 * steady.std() * rng.standard_normal(len(t))})


@pytest.mark.parametrize("method", ["weak", "path", "shooting", "auto"])
def test_given_a_steady_sine_then_no_method_can_tell_its_four_unknowns(method: str) -> None:
    for seed in range(2):
        result = identify(model(), record(seed, 0.0), method)
        assert result.verdict == "cannot tell", (seed, result.parameters)
        wrong = [abs(result.parameters[n].value - v) for n, v in (("c", C), ("k", K))]
        errors = [result.parameters[n].stderr for n in ("c", "k")]
        assert np.all(np.array(wrong) < 3 * np.array(errors))  # infinite, or as wide as what it hides


def test_given_a_transient_beside_the_sine_then_all_four_are_told() -> None:
    for seed in range(3):
        result = identify(model(), record(seed, 0.3), "path")
        assert result.verdict == "fits", result.reasons
        for name, truth in (("c", C), ("k", K)):
            found = result.parameters[name]
            assert abs(found.value - truth) < 4 * found.stderr
            assert found.stderr < 0.1 * truth


def test_given_numbers_that_the_data_do_not_choose_then_the_sentence_has_others_that_fit() -> None:
    result = identify(model(), record(0, 0.0), "path")
    said = [words for words in result.reasons if "follows the record as well" in words]
    assert said and all(np.isinf(result.parameters[n].stderr) for n in NAMES)


def test_given_a_path_that_breaks_its_equations_then_it_is_no_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = record(0, 0.0)
    x, subject = steady.channels["x"].data, Experiment(model(), steady)
    fitted = fit(subject, Start("path", subject.guesses(), [np.array([x, np.gradient(x, 0.05)])]))
    assert (found := rivals.rival(fitted)) is not None and found.words

    def loosened(*given: Any) -> Fitted | None:
        other = held(*given)
        return None if other is None else replace(other, defect=0.05)

    held = rivals._held_fit
    monkeypatch.setattr(rivals, "_held_fit", loosened)
    assert rivals.rival(fitted) is None


def test_given_a_long_record_then_an_excerpt_excludes_what_the_whole_would_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = identify(model(), record(0, 0.3), "path"), identify(model(), record(0, 0.0), "path")
    asked: list[bool] = []
    look = rivals._fails_on_an_excerpt

    def counted(*given: Any) -> bool:
        asked.append(look(*given))
        return asked[-1]

    monkeypatch.setattr(rivals, "_EXCERPT", 250)
    monkeypatch.setattr(rivals, "_fails_on_an_excerpt", counted)
    told = identify(model(), record(0, 0.3), "path")
    assert told.verdict == whole[0].verdict == "fits" and told.parameters == whole[0].parameters
    not_told = identify(model(), record(0, 0.0), "path")
    assert not_told.verdict == whole[1].verdict == "cannot tell"
    assert asked and not all(asked)  # what the excerpt does not exclude was fitted to the whole


def test_given_motions_that_run_apart_then_other_numbers_are_tried_with_a_first_state_that_follows() -> None:
    """x' = g x grows by e^16: with another g the old first state would miss the end by half."""
    t = np.arange(400) * 0.02
    x = 1e-6 * np.exp(2.0 * t)
    x += 1e-3 * x.std() * np.random.default_rng(0).standard_normal(len(t))
    growing = Model.from_equations({"x": "g*x"}, {"g": {"guess": 2.0}}, outputs={"x": "x"})
    experiment = Experiment(growing, Record.from_arrays(50.0, {"x": x}))
    begun = Start("shooting", experiment.guesses(), [np.maximum(x, 1e-6)[None]], engine="shooting")
    fitted = fit(experiment, begun)
    moved = fitted.estimate + 0.05
    states = rivals._with_first_states(fitted, moved)[0]
    assert states is not None
    ends = states[0, 0] * np.exp(moved[0] * t[-1]), fitted.pieces[0].states[0, 0] * np.exp(moved[0] * t[-1])
    assert ends[0] == pytest.approx(x[-1], rel=0.25) and ends[1] > 1.4 * x[-1]
