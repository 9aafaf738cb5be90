"""When other numbers, a fault of a sensor or a jump count: each decision from both sides, without a fit."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.base.errors import DataError
from analysis.base.progress import SILENT
from analysis.estimate.finish import channels as channels_module
from analysis.estimate.finish import errors as errors_module
from analysis.estimate.finish import evidence as evidence_module
from analysis.estimate.finish import missing_terms as missing_module
from analysis.estimate.finish import rivals as rivals_module
from analysis.estimate.finish import sensor_faults as faults_module
from analysis.estimate.finish.channels import _of_output, looks_held
from analysis.estimate.finish.errors import _parts
from analysis.estimate.finish.evidence import Evidence, Fault, Figures, gather
from analysis.estimate.finish.judge import Judgement
from analysis.estimate.finish.jumps import _size, _without, jump_words
from analysis.estimate.finish.linearised import Regression
from analysis.estimate.finish.missing_terms import input_correlation
from analysis.estimate.finish.rivals import rival
from analysis.estimate.finish.score import Scores
from analysis.estimate.finish.sensor_faults import _with_fault, _words, with_sensor_faults
from analysis.experiment import Conditions


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


def unknown(name: str, index: int = 0, kind: str = "parameter", record: int = -1) -> Any:
    return about(name=name, index=index, kind=kind, record=record, lower=-np.inf, upper=np.inf)


def fitted_with(error: float, correlation: float = 0.995) -> Any:
    """Estimates 2 and 3 with these standard errors, which the data hardly tell apart."""
    C = error**2 * np.array([[1.0, correlation], [correlation, 1.0]])
    return about(
        information=np.linalg.inv(C), estimate=np.array([2.0, 3.0]), names=["c", "k"], sigma=np.ones(1),
        unknowns=[unknown("c"), unknown("k", 1)], chi2_at=lambda sigma: 500.0,
        pieces=[about(residuals=np.ones((1, 100)))],
    )  # fmt: skip


class HeldFits:
    """Fits with a parameter held, which all end with this rise of chi-square."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, rise: float, converged: bool = True) -> None:
        self.asked: list[tuple[np.ndarray, int]] = []

        def held(fitted: Any, place: int, moved: np.ndarray, progress: Any, iterations: int) -> Any:
            self.asked.append((moved, iterations))
            return about(
                defect=None, converged=converged or len(self.asked) % 2 == 0,
                chi2_at=lambda sigma: 500.0 + rise, unknowns=[unknown("k", 1)],
                estimate=moved[1:], values=moved[None],
            )  # fmt: skip

        monkeypatch.setattr(rivals_module, "_held_fit", held)
        monkeypatch.setattr(rivals_module, "_fails_on_an_excerpt", lambda *_: False)


CHANCE = 2 * np.log(100) + 8  # the highest line of the noise, and a little


@pytest.mark.parametrize(
    ("error", "rise", "found"),
    [
        (0.05, CHANCE - 0.1, True),
        (0.05, CHANCE + 0.1, False),
        (1.0, 16 / 3 - 0.1, True),  # four errors promise 16, of which a third must be there
        (1.0, 16 / 3 + 0.1, False),
    ],
)
def test_given_numbers_far_away_then_they_count_where_chi_square_hardly_rises(
    monkeypatch: pytest.MonkeyPatch, error: float, rise: float, found: bool
) -> None:
    fits = HeldFits(monkeypatch, rise)
    answer = rival(fitted_with(error))
    assert (answer is not None) == found
    near = [moved[0] for moved, _ in fits.asked[:2]]
    begun = near == pytest.approx([2.0 - 4 * error, 2.0 + 4 * error]) and 4 * error < 0.32
    assert begun == (error == 0.05)  # four errors away first, where they are less than the least share
    first = fits.asked[2 if begun else 0][0]
    change = -max(1.0, 4 * error)  # half the estimate less, or four errors
    assert first == pytest.approx([2.0 + change, 3.0 + 0.995 * change])
    assert fits.asked[0][1] == 6
    if answer is None:
        assert fits.asked[-1][0][0] == pytest.approx(2.0 + max(2.0, 4 * error))
        return
    other = f" and k = {3.0 + 0.995 * change:.4g}" if 0.995 * abs(change) > 4 * error else ""
    assert answer.words.startswith(f"With c = {2.0 + change:.4g}{other} the model")
    assert answer.concerned == (0, 1)


def test_given_a_deeper_valley_a_few_errors_away_then_the_fit_goes_on_there_and_looks_no_further(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chi-square falls by 20 where the parameter is larger by four errors, 10 % of it."""
    asked = []

    def held(fitted: Any, place: int, moved: np.ndarray, progress: Any, iterations: int) -> Any:
        asked.append(float(moved[0]))
        return about(
            defect=None, converged=True, chi2_at=lambda sigma: 480.0 if moved[0] > 2 else 516.0,
            unknowns=[unknown("k", 1)], estimate=moved[1:], values=moved[None], as_start=lambda: moved[0],
        )  # fmt: skip

    monkeypatch.setattr(rivals_module, "_held_fit", held)
    monkeypatch.setattr(rivals_module, "_fails_on_an_excerpt", lambda *_: False)
    answer = rival(fitted_with(0.05))
    assert answer is not None and answer.better == pytest.approx(2.2)
    assert asked == pytest.approx([1.8, 2.2])


def test_given_parameters_that_the_data_tell_apart_then_no_other_fit_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits = HeldFits(monkeypatch, 0.0)
    assert rival(fitted_with(0.05, np.sqrt(1 - 1 / 49))) is None and not fits.asked
    assert rival(fitted_with(0.05, np.sqrt(1 - 1 / 51))) is not None


def test_given_a_deeper_valley_between_the_estimate_and_twice_it_then_it_is_where_the_fit_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Chi-square rises by 5 at 1.19 and falls by 50 at 1.41 times the estimate; it rises by 1e4 elsewhere."""

    def held(fitted: Any, place: int, moved: np.ndarray, progress: Any, iterations: int) -> Any:
        rise = {2.38: 5.0, 2.82: -50.0}.get(round(float(moved[0]), 2), 1e4)
        return about(
            defect=None, converged=True, chi2_at=lambda sigma: 500.0 + rise, unknowns=[unknown("k", 1)],
            estimate=moved[1:], values=moved[None], as_start=lambda: moved[0],
        )  # fmt: skip

    monkeypatch.setattr(rivals_module, "_held_fit", held)
    monkeypatch.setattr(rivals_module, "_fails_on_an_excerpt", lambda *_: False)
    answer = rival(fitted_with(0.05))
    assert answer is not None and answer.better == pytest.approx(2.82)
    assert "(chi-square -50.0)" in answer.words


@pytest.mark.parametrize(("rise", "asked"), [(99 * CHANCE, 8 * [6, 60]), (101 * CHANCE, 8 * [6])])
def test_given_a_first_look_that_is_hopeless_then_it_is_not_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, rise: float, asked: list[int]
) -> None:
    fits = HeldFits(monkeypatch, rise, converged=False)
    assert rival(fitted_with(0.05)) is None
    assert [iterations for _, iterations in fits.asked] == asked


def test_given_inputs_then_the_least_chance_counts_as_often_as_it_was_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two inputs and two outputs: four tests, the third of them without freedom."""
    statistics = iter([(3.0, 2), (14.0, 2), (0.0, 0), (5.0, 2)])
    monkeypatch.setattr(missing_module, "_spacing", lambda *_: 1)
    monkeypatch.setattr(missing_module, "_delayed", lambda *_: None)
    monkeypatch.setattr(missing_module, "output_columns", lambda *_: None)
    monkeypatch.setattr(missing_module, "tested", lambda *_: about(joint=lambda: next(statistics)))
    fitted = about(inputs_estimated=False, experiment=about(model=about(inputs=("f", "g"))))
    found = input_correlation(fitted, cast(Any, [about(q=2)]), [])
    assert found == pytest.approx(3 * np.exp(-7.0))  # chi-square of two degrees: exp(-s/2)
    fitted.inputs_estimated = True
    assert input_correlation(fitted, cast(Any, [about(q=2)]), []) == 1.0
    none = about(inputs_estimated=False, experiment=about(model=about(inputs=())))
    assert input_correlation(none, cast(Any, [about(q=2)]), []) == 1.0


def faulty(**conditions: Any) -> tuple[Any, list[str]]:
    made: list[str] = []

    def with_sensors(offsets: Any, delays: Any, drifts: Any) -> str:
        made.append("|".join([",".join(offsets), ",".join(delays), *drifts]))
        return "sensors"

    experiment = about(
        conditions=Conditions(**conditions), model=about(outputs=("x", "y"), inputs=("f",)),
        with_sensors=with_sensors, with_inputs=lambda kind, _: made.append(kind) or kind,
    )  # fmt: skip
    return about(experiment=experiment, pieces=[about(run=about(dt=0.1))], dof=100, sigma=np.ones(1)), made


@pytest.mark.parametrize(
    ("fault", "conditions", "tried"),
    [
        (Fault("offset", "x", 0.3), {}, ["x|"]),
        (Fault("offset", "x", 0.3), {"offsets": ("x",)}, []),
        (Fault("drift", "y", 0.3), {"offsets": ("x",)}, ["x||y"]),
        (Fault("drift", "y", 0.3), {"drifts": ("y",)}, []),
        (Fault("delay", "x", 0.03), {}, ["|x"]),
        (Fault("delay", "x", 0.0051), {}, ["|x"]),
        (Fault("delay", "x", 0.0049), {}, []),  # less than a twentieth of a sample
        (Fault("delay", "x", -0.0049), {}, []),
        (Fault("delay", "f", 0.03), {"offsets": ("y",)}, ["y|x,y"]),
        (Fault("delay", "f", 0.03), {"delays": ("x", "y")}, []),
        (Fault("delay", "f", -0.05), {}, ["|x,y", "hold"]),  # half a sample early
        (Fault("delay", "f", -0.05), {"inputs": "cubic"}, ["|x,y"]),
    ],
)
def test_given_a_fault_then_it_becomes_an_unknown_unless_it_is_one(
    monkeypatch: pytest.MonkeyPatch, fault: Fault, conditions: dict[str, Any], tried: list[str]
) -> None:
    fitted, made = faulty(**conditions)
    ends = {
        "sensors": about(chi2_at=lambda sigma: 90.0, unknowns=[0] * 4, name="sensors"),
        "hold": about(chi2_at=lambda sigma: 98.0, unknowns=[0] * 2, name="hold"),
    }
    monkeypatch.setattr(faults_module, "optimum_near", lambda other, *_: ends[other])
    found = _with_fault(fitted, fault, SILENT)
    assert made == tried
    # two unknowns more cost 2 ln 100 = 9.2 of chi-square: 90 + 18.4 against 98 + 9.2
    assert (found.name if found is not None else None) == (
        "hold" if "hold" in tried else "sensors" if tried else None
    )


@pytest.mark.parametrize(
    ("verdicts", "lost", "faults"),
    [(["fits"], 9, 1), (["close", "fits"], 9, 2), (["close"] * 9, 9, 0), (["close", "fits"], 2, 0)],
)
def test_given_faults_one_after_the_other_then_they_count_if_nothing_is_left_in_the_end(
    monkeypatch: pytest.MonkeyPatch, verdicts: list[str], lost: int, faults: int
) -> None:
    fits = iter(range(1, 9))
    answers = iter(verdicts)

    def judged(verdict: str) -> Judgement:
        none = np.zeros(0)
        figures = Figures(fault=Fault("offset", "x", 0.1))
        return Judgement(verdict, ["why"], none, none, none, figures=figures)

    monkeypatch.setattr(
        faults_module, "_with_fault", lambda *_: number if (number := next(fits)) < lost else None
    )
    monkeypatch.setattr(faults_module, "in_the_better_reading", lambda given, fitted, progress: fitted)
    monkeypatch.setattr(faults_module, "judge", lambda fitted: judged(next(answers)))
    monkeypatch.setattr(faults_module, "_words", lambda fitted, judgement, fault: f"{fault.kind} {fitted}")
    found = with_sensor_faults(cast(Any, 0), cast(Any, 0), judged("close"), SILENT)
    if not faults:
        assert found is None
        return
    assert found is not None and cast(Any, found[0]) == faults
    assert found[1].reasons == [f"offset {faults}"] * faults + ["why"]
    clean = Judgement("close", [], np.zeros(0), np.zeros(0), np.zeros(0))
    assert with_sensor_faults(cast(Any, 0), cast(Any, 0), clean, SILENT) is None


def test_given_a_fault_then_its_words_have_size_and_error() -> None:
    fitted, _ = faulty()
    fitted.unknowns = [unknown("c"), unknown("offset x", 1, "offset"), unknown("delay y", 2, "delay")]
    judged = about(estimate=np.array([1.0, 0.25, -0.04]), covariance=np.diag([9.0, 1e-4, 4e-6]))
    assert _words(fitted, judged, Fault("offset", "x", 0.0)) == (
        "The sensor of x has an offset of 0.25 ± 0.01, fitted with the parameters."
    )
    assert "fitted with the parameters: delay y -0.04 ± 0.002 (-0.4 samples)." in _words(
        fitted, judged, Fault("delay", "y", 0.0)
    )


def test_given_a_jump_then_the_record_is_cut_around_it_and_short_ends_are_given_up() -> None:
    def kept(first: int, stop: int) -> Any:
        run = about(spans=((0, 400), (450, 1000)))
        experiment = about(runs=[None, run], with_spans=lambda number, spans: (number, spans))
        return _without(cast(Any, experiment), 1, first, stop)

    assert kept(600, 620) == (1, ((0, 400), (450, 600), (620, 1000)))
    assert kept(500, 949) == (1, ((0, 400), (450, 500), (949, 1000)))
    assert kept(499, 951) == (1, ((0, 400),))  # fewer than fifty samples on either side
    assert kept(400, 450) == (1, ((0, 400), (450, 1000)))
    rows = np.array([[2.0, np.nan, -2.0], [1.0, 1.0, 1.0], [np.nan] * 3])
    assert _size(about(residuals=rows), np.array([1.0, 0.25, 1.0])) == pytest.approx(4.0)
    assert _size(about(residuals=rows[2:]), np.ones(1)) == 0.0
    fitted = about(start=about(jumps=[21.25, 3.5]))
    assert "just before t = 3.5, 21.25 (" in jump_words(fitted)[0]


@pytest.mark.parametrize(
    ("channel", "samples", "outputs", "held"),
    [
        ("f", -0.36, ("x", "y"), True),
        ("f", -0.64, ("x", "y"), True),
        ("f", -0.34, ("x",), False),
        ("f", 0.5, ("x",), False),
        ("x", 0.64, ("x",), True),
        ("x", 0.66, ("x",), False),
        ("x", -0.5, ("x",), False),
        ("x", 0.5, ("x", "y"), False),  # the other output would be as late
    ],
)
def test_given_half_a_sample_between_force_and_output_then_the_force_looks_held(
    channel: str, samples: float, outputs: tuple[str, ...], held: bool
) -> None:
    assert looks_held(channel, samples, ("f",), outputs) is held
    assert not looks_held("x", 0.5, (), outputs)


def test_given_an_output_then_offset_delay_and_drift_move_it_by_one_against_its_slope_and_by_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model's output is t squared: measured less what is left, which is given over the noise."""
    t = 0.1 * np.arange(50)
    left = np.sin(t)
    part = about(
        stretch=about(
            outputs=np.vstack([np.full(50, 9.0), t**2 + 0.5 * left]), sigma=np.array([1.0, 0.5]), times=t,
            origin=-2.0,
        ),
        residuals=np.column_stack([np.zeros(50), left]), q=2, N=50,
    )  # fmt: skip
    moved: list[np.ndarray] = []
    monkeypatch.setattr(channels_module, "output_columns", lambda part, shifts: moved.append(shifts))
    scored = Scores(np.array([2.0, 3.0, 4.0]), np.eye(3), np.eye(3), np.ones(3, bool), np.zeros((1, 3)), 1e6)
    monkeypatch.setattr(channels_module, "tested", lambda *_: scored)
    offset, delay, drift = _of_output(cast(Any, None), cast(Any, [part, part]), [], 1, "y")
    assert not moved[0][0].any() and np.all(moved[0][1, :, 0] == 1.0)
    assert moved[0][1, 1:-1, 1] == pytest.approx(-2 * t[1:-1])
    assert moved[0][1, :, 2] == pytest.approx(t + 2.0)
    assert (offset.name, delay.name, drift.name, offset.place) == ("offset", "delay", "drift", "y")
    size = np.sum(part.stretch.outputs[1] ** 2)
    assert offset.share == pytest.approx(2.0 * np.sqrt(50 / size))
    assert delay.share == pytest.approx(3.0 * np.sqrt(np.sum(moved[0][1, :, 1] ** 2) / size))


class Parted:
    """A fit of one unknown near 3 whose parts see it 0.2 higher; another search of the parts ends as said."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, again: Any, parts: int = 8, followed: bool = True
    ) -> None:
        self.asked: list[int] = []
        self.linear = [Regression(np.full((1, 50), 0.2), np.ones((1, 50, 1)), 0)] * parts
        own = [Regression(np.zeros((1, 50)), np.ones((1, 50, 1)), 0)] * parts

        def fit(experiment: Any, start: Any, progress: Any, cuts: int) -> Any:
            self.asked.append(cuts)
            if isinstance(again, Exception):
                raise again
            return again

        monkeypatch.setattr(sys.modules["analysis.estimate.finish.fit"], "fit", fit)
        monkeypatch.setattr(errors_module, "linearisations", lambda fitted, cuts=1: (fitted, cuts))
        monkeypatch.setattr(
            errors_module, "regressions_of",
            lambda fitted, linear: (own, True) if fitted is again else (self.linear, followed),
        )  # fmt: skip

    def run(self, samples: int = 400, converged: bool = True, upper: float = np.inf) -> Any:
        limits = unknown("k")
        limits.upper = upper
        return _parts(
            about(
                converged=converged, estimate=np.array([3.0]), unknowns=[limits], experiment=None,
                pieces=[about(times=np.zeros(samples))], as_start=lambda: None,
            ),
            SILENT,
        )  # fmt: skip


def ended(value: float, converged: bool = True) -> Any:
    return about(converged=converged, estimate=np.array([value]))


def test_given_a_search_over_parts_that_ends_then_its_own_estimate_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parted = Parted(monkeypatch, ended(3.3))
    regressions, estimate = parted.run()
    assert parted.asked == [8] and estimate == pytest.approx([3.3])
    assert not regressions[0].errors.any()
    assert parted.run(samples=399)[1] == pytest.approx([3.3]) and parted.asked[-1] == 4


HALF_LOST = about(converged=True, estimate=np.array([3.3, np.nan]))


@pytest.mark.parametrize("again", [DataError("no"), ended(3.3, False), ended(np.nan), HALF_LOST])
def test_given_a_search_over_parts_that_does_not_end_then_the_whole_fits_estimate_stays(
    monkeypatch: pytest.MonkeyPatch, again: Any
) -> None:
    parted = Parted(monkeypatch, again)
    regressions, estimate = parted.run()
    assert estimate == pytest.approx([3.0])
    assert regressions[0].errors == pytest.approx(np.zeros((1, 50)))  # at the parts' own optimum


def test_given_a_very_long_record_then_one_step_within_the_bounds_stands_for_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parted = Parted(monkeypatch, ended(3.3))
    assert parted.run(samples=100_001)[1] == pytest.approx([3.2]) and parted.asked == []
    assert parted.run(samples=100_001, upper=3.1)[1] == pytest.approx([3.1])
    assert parted.run(converged=False)[1] == pytest.approx([3.0]) and parted.asked == []
    assert Parted(monkeypatch, DataError("no"), parts=2).run() is not None
    assert Parted(monkeypatch, DataError("no"), parts=1).run() is None
    assert Parted(monkeypatch, DataError("no"), followed=False).run() is None


def gathered(
    monkeypatch: pytest.MonkeyPatch, errors: np.ndarray, noise: float | None = None, followed: bool = True
) -> Evidence:
    """Of a swing of 2 whose residuals are these, in units of a noise of 0.1."""
    replaced = {
        "linearisations": lambda fitted: [about(N=len(errors))],
        "regressions_of": lambda *_: ([Regression(errors[None], np.zeros((1, len(errors), 1)))], followed),
        "missing_terms": lambda *_: [], "channel_faults": lambda *_: [], "input_correlation": lambda *_: 0.5,
        "held_out": lambda fitted: None,
    }  # fmt: skip
    for name, one in replaced.items():
        monkeypatch.setattr(evidence_module, name, one)
    outputs = 2 * np.cos(0.03 * np.arange(len(errors)))[None] + 0.1 * errors
    run = about(
        outputs=outputs, dt=0.5, fitted_variants=np.zeros(0),
        noise=np.array([np.nan if noise is None else noise]),
    )  # fmt: skip
    model = about(outputs=("x",), inputs=("f",), equations=about(functions_of_time=()))
    piece = about(residuals=0.1 * errors[None], states=np.zeros((2, 5)), run=run, first=0, stop=len(errors))
    return gather(
        about(
            experiment=about(
                model=model,
                conditions=about(inputs="auto"),
                runs=[run],
            ),
            pieces=[piece],
            sigma=np.array([[0.1]]), estimate=np.zeros(1),
        )
    )  # fmt: skip


def test_given_residuals_then_their_size_share_and_systematic_part_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(1)
    white = rng.standard_normal(4000)
    white /= np.sqrt(np.mean(white**2))
    found = gathered(monkeypatch, white)
    left = 0.1 / np.hypot(np.sqrt(2), 0.1)
    assert found.left["x"] == pytest.approx(left, rel=0.01)
    assert found.r2["x"] == pytest.approx(1 - left**2, rel=1e-4)
    assert found.shares == {"x": 0.0} and found.tones == {} and found.input_trace == 0.5
    assert found.against() == [] and found.processes[0].order == 0
    red = lfilter([1.0], [1.0, -0.9], rng.standard_normal(4200))[200:]
    red /= np.sqrt(np.mean(red**2))
    coloured = gathered(monkeypatch, red)
    assert coloured.processes[0].order >= 1 and coloured.white["x"].probability < 1e-9
    assert coloured.shares["x"] == pytest.approx(coloured.left["x"] * np.sqrt(1 - 0.19), rel=0.03)
    # of residuals twice the noise that was given three quarters of the power are systematic, red or not
    loud = gathered(monkeypatch, white, noise=0.05)
    assert loud.noise["x"].significant
    assert loud.shares["x"] == pytest.approx(0.0)  # white: the process explains nothing of them
    assert gathered(monkeypatch, red, noise=0.05).shares["x"] == pytest.approx(
        coloured.left["x"] * np.sqrt(0.75), rel=0.01
    )
    hum = gathered(monkeypatch, white + 0.5 * np.cos(0.9 * np.arange(4000)))
    assert list(hum.tones) == ["x"] and f"tone at {0.9 / 2 / np.pi / 0.5:.3g}" in hum.tones["x"]
    lost = gathered(monkeypatch, white, followed=False)
    assert lost.missing == [] and lost.input_trace == 1.0 and lost.prediction is None
