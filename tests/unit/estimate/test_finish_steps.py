"""The steps of the one finish: which fit is kept, what is written of it, numbers by hand."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.estimate.finish.assemble import (
    _estimates,
    _expected,
    _start_values,
    _warnings,
    with_initials,
    write_start,
)
from analysis.estimate.finish.autoregression import Autoregression, fit_autoregression
from analysis.estimate.finish.channels import _missing
from analysis.estimate.finish.errors import ErrorBars, error_bars
from analysis.estimate.finish.evidence import Evidence, Fault, Figures, _percent, missing_words
from analysis.estimate.finish.finish import finish
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.judge import Judgement, _far_from_guess, judge
from analysis.estimate.finish.linearised import Regression
from analysis.estimate.finish.missing_terms import _missing_force
from analysis.estimate.finish.no_worse import misfit
from analysis.estimate.finish.score import Added, Missing, Scores, combined, pushes, scores
from analysis.estimate.finish.sensor_noise import SensorNoise
from analysis.estimate.finish.tones import Tone, _own_lines, of_the_motion, tone_words
from analysis.estimate.finish.twins import _apart, _promised
from analysis.estimate.finish.whiteness import Whiteness
from analysis.estimate.start import OwnEstimate, Start

TURN = 2 * np.pi


def about(**given: Any) -> Any:
    return SimpleNamespace(**given)


def unknown(name: str, index: int = 0, kind: str = "parameter", record: int = -1, **given: Any) -> Any:
    return about(
        **{"name": name, "index": index, "kind": kind, "record": record, "unit": "", "lower": -np.inf,
           "upper": np.inf, **given}
    )  # fmt: skip


def fitted_of(**given: Any) -> Fitted:
    """A fit of which nothing but this is known."""
    plain = dict.fromkeys(Fitted.__dataclass_fields__) | {
        "steps": 1, "segments": 1, "pieces": (),
        "converged": True, "message": "", "history": [], "start": START,
        "input_covariance": 0.0,
    }  # fmt: skip
    return Fitted(**cast(Any, plain | given))


START = Start("weak", np.zeros((1, 2)))
LATE, NOTHING = Fault("delay", "x", 0.1), Figures()
EXPERIMENT = about(given=about(free=["c"]), conditions=about(per_record=()))


class Steps:
    """The finish with fits that are numbered: 1 from the start, 2 from its better motion, 3 and on mended."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, verdicts: dict[int, str], figures: Figures = NOTHING
    ) -> None:
        self.asked: list[str] = []
        self.verdicts, self.figures = verdicts, figures
        self.better: Fitted | None = None
        self.mended: dict[str, Any] = dict.fromkeys(("fault", "hum", "jumps"))
        replaced = {
            "fit": lambda *_, max_iterations: self._did("fit", fitted_of(iterations=1)),
            "judge": self._judge,
            "in_the_guess_turn": lambda fitted, progress: fitted,
            "with_drive_fitted": lambda fitted, _: fitted,
            "in_the_better_reading": lambda _, fitted, progress: fitted,
            "with_other_reading": lambda experiment, fitted, judgement, _: judgement,
            "no_worse_than_start": lambda f, _: self._did("no worse", self.better or f),
            "with_sensor_faults": lambda *_: self._did("fault", self.mended["fault"]),
            "without_hum": lambda *_: self._did("hum", self.mended["hum"]),
            "cut_at_jumps": lambda *_: self._did("jumps", self.mended["jumps"]),
            "hum_words": lambda _: ["hum"],
            "jump_words": lambda _: ["jump"],
            "assemble": lambda fitted, judgement, options: (fitted, judgement, options),
            "with_curves": lambda result, _: result,
        }
        for name, one in replaced.items():
            monkeypatch.setattr(sys.modules[finish.__module__], name, one)

    def _did(self, what: str, answer: Any) -> Any:
        self.asked.append(what)
        return answer

    def _judge(self, fitted: Fitted) -> Judgement:
        none = np.zeros(0)
        return Judgement(self.verdicts[fitted.iterations], ["why"], none, none, none, figures=self.figures)

    def run(self, start: Start = START) -> tuple[Fitted, Judgement]:
        found = cast(Any, finish(EXPERIMENT, start, SILENT, options={"a": 1}))
        assert found[2] == {"a": 1}
        return cast(tuple[Fitted, Judgement], found[:2])


def test_given_a_fit_to_the_noise_then_it_has_converged_and_nothing_else_is_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = Steps(monkeypatch, {1: "fits"}, Figures(over_noise={"x": 9.0}, tones=["x"], fault=LATE))
    assert steps.run()[0].converged and steps.asked == ["fit"]
    for converged, kept in ((False, ""), (True, "slow")):
        made = fitted_of(iterations=1, converged=converged, message="slow")
        found = steps.run(Start("weak", np.zeros((1, 2)), fitted=made))[0]
        assert found.converged and found.message == kept
    assert steps.asked == ["fit"]


def test_given_a_fit_that_is_poor_then_its_start_is_looked_at_unless_it_was_made_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = Steps(monkeypatch, {1: "misses", 2: "close"})
    assert steps.run()[1].verdict == "misses" and steps.asked == ["fit", "no worse"]
    steps.better = fitted_of(iterations=2, converged=False, message="slow")
    fitted, judgement = steps.run()
    assert (fitted.iterations, judgement.verdict) == (2, "close")
    assert not fitted.converged and fitted.message == "slow"
    steps.asked.clear()
    steps.run(Start("weak", np.zeros((1, 2)), fitted=fitted_of(iterations=1)))
    assert steps.asked == []


@pytest.mark.parametrize(
    ("figures", "asked"),
    [
        (Figures(over_noise={"x": 1.0, "y": 1.09}), []),
        (Figures(over_noise={"x": 1.0, "y": 1.11}), ["jumps"]),
        (Figures(tones=["x"]), ["hum"]),
        (Figures(over_noise={"x": 2.0}, tones=["x"], fault=LATE), ["fault", "hum", "jumps"]),
    ],
)
def test_given_a_fault_of_the_record_then_it_counts_only_if_nothing_speaks_against_it_then(
    monkeypatch: pytest.MonkeyPatch, figures: Figures, asked: list[str]
) -> None:
    steps = Steps(monkeypatch, {1: "close", 3: "close", 4: "fits"}, figures)
    steps.mended |= {"hum": fitted_of(iterations=3), "jumps": fitted_of(iterations=4)}
    fitted, judgement = steps.run()
    assert steps.asked == ["fit", "no worse", *asked]
    if "jumps" in asked:
        assert (fitted.iterations, judgement.reasons) == (4, ["jump", "why"])
    else:
        assert (fitted.iterations, judgement.reasons) == (1, ["why"])
    counted = fitted_of(iterations=4)
    steps.mended["fault"] = (counted, replace(steps._judge(counted), reasons=["late"]))
    assert (steps.run()[1].reasons == ["late"]) == ("fault" in asked)


def test_given_initial_values_then_their_errors_hold_what_the_unknowns_leave_open() -> None:
    """z(0) = z + Z (p - p_hat): var = 1/information + Z C Z'; of two records each has its own."""
    C = np.array([[4.0, 1.0], [1.0, 9.0]])
    Z = np.array([[0.5, -1.0], [7.0, 7.0]])
    model = about(
        states=("x", "v"),
        initial={"x": about(free=True), "v": about(free=False)},
        unit=lambda name: f"u{name}",
    )
    piece = about(
        first=0, record=0, states=np.array([[1.5, 9.0], [2.5, 9.0]]), initial_slope=Z,
        initial_information=np.diag([4.0, 16.0]),
    )  # fmt: skip
    later = about(**{**vars(piece), "first": 50})  # behind a gap: no initial value of the record
    second = about(**{**vars(piece), "record": 1, "states": np.array([[-3.0], [0.0]])})
    fitted = fitted_of(
        experiment=about(model=model, runs=[None]), information=np.linalg.inv(C), pieces=(piece, later),
        unknowns=[unknown("c", unit="N"), unknown("k", 1)],
    )  # fmt: skip
    names, values, covariance, units = with_initials(fitted, np.array([2.0, 5.0]), C)
    assert names == ["c", "k", "x(0)"] and units == {"c": "N", "k": "", "x(0)": "ux"}
    assert values == pytest.approx([2.0, 5.0, 1.5])
    along = Z[:1] @ C
    assert covariance[2, 2] == pytest.approx(0.25 + float((along @ Z[0])[0]))
    assert covariance[2, :2] == pytest.approx(along[0]) and covariance[:2, 2] == pytest.approx(along[0])
    assert covariance[:2, :2] == pytest.approx(C)
    two = fitted_of(
        **{**vars(fitted), "experiment": about(model=model, runs=[None] * 2), "pieces": (piece, second)}
    )
    names, values, covariance, _ = with_initials(two, np.array([2.0, 5.0]), C)
    assert names[2:] == ["x(0)[1]", "x(0)[2]"] and values[2:] == pytest.approx([1.5, -3.0])
    assert covariance[3, 3] == pytest.approx(covariance[2, 2]) and covariance[2, 3] == 0.0


@pytest.mark.parametrize(("slope", "known"), [([1.0, 1.0], False), ([1.0, -1.0], True), ([1.0, -0.9], False)])
def test_given_a_pair_that_cannot_be_split_then_a_first_state_that_follows_it_is_open(
    slope: list[float], known: bool
) -> None:
    """The data tell the difference of two unknowns, and of a first state what follows that alone."""
    information = np.array([[1.0, -1.0], [-1.0, 1.0]])
    model = about(states=("x",), initial={"x": about(free=True)}, unit=lambda name: "")
    piece = about(
        first=0, record=0, states=np.ones((1, 2)), initial_slope=np.array([slope]),
        initial_information=np.array([[4.0]]),
    )  # fmt: skip
    fitted = fitted_of(
        experiment=about(model=model, runs=[None]), information=information, pieces=(piece,),
        unknowns=[unknown("a"), unknown("b", 1)],
    )  # fmt: skip
    reported = np.array([[np.inf, -0.25], [-0.25, np.inf]])
    covariance = with_initials(fitted, np.ones(2), reported)[2]
    assert np.isinf(np.diag(covariance)[:2]).all()
    assert np.isfinite(covariance[2, 2]) == known
    if known:  # pseudo-inverse: 1/4 [[1, -1], [-1, 1]], and (1, -1) of it is 1
        assert covariance[2, 2] == pytest.approx(0.25 + 1.0)


def test_given_values_and_errors_then_intervals_have_their_own_quantiles() -> None:
    own = OwnEstimate(
        ["c", "k"], np.array([1.0, -2.0]), units={"c": "N"}, quantile=np.array([2.0, 3.0]),
        ideal=np.diag([0.01, 4.0]),
    )  # fmt: skip
    found = _estimates(own, np.diag([0.04, -1e-18]))
    c, k = found["c"], found["k"]
    assert [c.value, c.stderr, c.lower, c.upper, c.stderr_ideal] == pytest.approx([1.0, 0.2, 0.6, 1.4, 0.1])
    assert c.unit == "N" and k.unit == ""
    assert [k.stderr, k.lower, k.upper, k.stderr_ideal] == [0.0, -2.0, -2.0, 2.0]


def test_given_a_method_by_itself_then_its_errors_are_its_own() -> None:
    information = np.diag([4.0, 25.0])
    own = OwnEstimate(["c", "k"], np.array([1.0, 2.0]), information)
    found = write_start(Start("weak", np.zeros((1, 2)), own=own), "m", "", {})
    assert [found.parameters[n].stderr for n in "ck"] == pytest.approx([0.5, 0.2])
    assert found.parameters["c"].upper == pytest.approx(1.0 + 0.5 * 1.959964, rel=1e-6)
    wider = OwnEstimate(["c", "k"], own.estimate, information, np.diag([9.0, 16.0]))
    found = write_start(Start("weak", np.zeros((1, 2)), own=wider), "m", "", {})
    assert [found.parameters[n].stderr for n in "ck"] == pytest.approx([3.0, 4.0])
    none = write_start(Start("weak", np.zeros((1, 2)), own=OwnEstimate(["c"], np.ones(1))), "m", "", {})
    assert np.isnan(none.parameters["c"].stderr)


@pytest.mark.parametrize(("chi2", "given", "said"), [(15.1, True, 1), (14.9, True, 0), (99.0, False, 0)])
def test_given_noise_that_was_said_then_a_misfit_of_half_as_much_again_is_warned_of(
    chi2: float, given: bool, said: int
) -> None:
    experiment = about(sigma=np.array([[1.0 if given else np.nan]]))
    unknowns = [unknown("c", lower=0.0), unknown("k", 1, upper=5.0), unknown("d", 2, upper=5.0)]
    fitted = fitted_of(
        experiment=experiment, chi2=chi2, dof=10, unknowns=unknowns, estimate=np.array([0.0, 5.0, 4.9]),
        message="stopped",
    )  # fmt: skip
    words = _warnings(fitted)
    assert len(words) == 3 + said and words[0] == "stopped"
    assert words[-2:] == ["c lies on its bound 0.", "k lies on its bound 5."]
    if said:
        assert f"{np.sqrt(chi2 / 10):.2g} times" in words[1]


def test_given_a_start_then_its_numbers_and_the_guesses_are_those_of_the_unknowns() -> None:
    unknowns = [unknown("k", 1), unknown("c[2]", 0, record=1), unknown("offset x", 2, kind="offset")]
    experiment = about(
        model=about(parameters={"c": 1, "k": 2}, values=lambda: np.array([0.1, 4.0])), unknowns=unknowns
    )
    start = Start("weak", np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert _start_values(experiment, start) == {"k": 2.0, "c[2]": 3.0}
    assert _start_values(experiment, Start("weak", np.array([1.0, 2.0]))) == {"k": 2.0, "c[2]": 1.0}
    assert _expected(fitted_of(experiment=experiment, unknowns=unknowns)) == pytest.approx([4.0, 0.1, 0.0])


def test_given_a_term_then_what_it_adds_over_an_interval_is_the_integral_through_the_flow() -> None:
    """x decays on its own, v' = -2 v + term: of a constant (1 - e^-2h)/2, of x the mixed exponentials."""
    h = 0.05
    t = h * np.arange(30)
    x, v = np.exp(-t), np.exp(-2 * t)
    flow = np.tile(np.diag([np.exp(-h), np.exp(-2 * h)]), (29, 1, 1))
    terms = [
        about(equation=1, values=lambda states, inputs: np.ones(states.shape[1])),
        about(equation=1, values=lambda states, inputs: states[0]),
        about(equation=0, values=lambda states, inputs: inputs[0]),
    ]
    found = pushes(
        flow, t, np.array([x, v]), np.array([-x, -2 * v]), cast(Any, terms), lambda times: np.cos(times)[None]
    )
    assert found[:, 1, 0] == pytest.approx((1 - np.exp(-2 * h)) / 2, rel=1e-4)
    # integral of e^-2(t+h-s) e^-s ds = e^-(t+h) - e^-h e^-(t+h)
    assert found[:, 1, 1] == pytest.approx(np.exp(-t[1:]) * (1 - np.exp(-h)), rel=1e-4)
    assert not found[:, 0, :2].any() and not found[:, 1, 2].any()

    def whole(s: np.ndarray) -> np.ndarray:  # of e^s cos s
        return np.exp(s) * (np.cos(s) + np.sin(s)) / 2

    exact = np.exp(-t[1:]) * (whole(t[1:]) - whole(t[:-1]))
    assert found[:, 0, 2] == pytest.approx(exact, rel=1e-4, abs=1e-6)


def plain_regression(errors: np.ndarray, columns: int = 1) -> Regression:
    return Regression(errors[None], np.zeros((1, len(errors), columns)))


@pytest.mark.parametrize(("count", "explained"), [(24, False), (25, True)])
def test_given_few_samples_then_added_columns_may_not_explain_the_noise_away(
    count: int, explained: bool
) -> None:
    """Five samples for each of two unknowns and three columns."""
    rng = np.random.default_rng(1)
    e, U = rng.standard_normal(count), rng.standard_normal((count, 3))
    seen: list[Any] = []

    def noise(left: Any, used: float) -> list[Autoregression]:
        seen.append((left[0].errors[0], used))
        return [Autoregression(np.zeros(0), 1.0)]

    found = scores([Added(plain_regression(e), U[None])], 2, noise)
    rest = e - U @ np.linalg.lstsq(U, e, rcond=None)[0]
    assert seen[0][0] == pytest.approx(rest if explained else e)
    assert seen[0][1] == (5 if explained else 2) and found.freedom == count - seen[0][1]
    assert found.score == pytest.approx(U.T @ e)
    together, covariance = combined(found)
    inverse = np.linalg.inv(U.T @ U)
    assert together == pytest.approx(inverse @ U.T @ e)
    assert covariance == pytest.approx(inverse @ found.covariance @ inverse)


@pytest.mark.parametrize(("variance", "counts"), [(0.01, 1.0), (4.0, 4.0)])
def test_given_a_process_with_gaps_in_its_spectrum_then_a_score_has_at_least_the_variance_of_white_noise(
    variance: float, counts: float
) -> None:
    rng = np.random.default_rng(2)
    U = rng.standard_normal((400, 2))
    e = rng.standard_normal(400)
    e -= U @ np.linalg.lstsq(U, e, rcond=None)[0]
    e /= np.sqrt(np.mean(e**2))
    e = np.append(e, np.nan)  # a missing sample is no sample
    U = np.vstack([U, np.zeros(2)])
    noise = [Autoregression(np.zeros(0), variance)]
    found = scores([Added(plain_regression(e), U[None])], 0, lambda left, used: noise)
    assert np.diag(found.covariance) == pytest.approx(counts * np.sum(U**2, axis=0))
    ratio = found.covariance[0, 1] / np.sqrt(np.prod(np.diag(found.covariance)))
    assert ratio == pytest.approx((U[:, 0] @ U[:, 1]) / np.sqrt(np.prod(np.sum(U**2, axis=0))))
    assert found.freedom == 398


def test_given_columns_that_the_unknowns_imitate_then_two_per_cent_of_a_column_must_be_its_own() -> None:
    rng = np.random.default_rng(3)
    J = rng.standard_normal((300, 1))
    side = rng.standard_normal(300)
    side -= J[:, 0] * (J[:, 0] @ side) / (J[:, 0] @ J[:, 0])
    side *= np.linalg.norm(J) / np.linalg.norm(side)
    U = np.column_stack([J[:, 0] + 0.019 * side, J[:, 0] + 0.021 * side, np.zeros(300)])
    e = 0.5 * side + rng.standard_normal(300)
    added = [Added(Regression(e[None], J[None]), U[None])]
    found = scores(added, 1, lambda left, used: [Autoregression(np.zeros(0), 1.0)])
    assert list(found.own) == [False, True, False]
    assert found.along == pytest.approx(np.array([[1.0, 1.0, 0.0]]))
    assert found.t_values()[0] == 0.0 and found.t_values()[1] != 0.0


def test_given_a_missing_term_then_its_share_is_that_of_the_rates_over_all_stretches() -> None:
    scored = Scores(
        np.array([6.0]), np.array([[3.0]]), np.array([[4.0]]), np.ones(1, bool), np.zeros((1, 1)), 1e6
    )
    motions = [
        about(
            linearisation=about(stretch=about(states=np.array([[1.0, 2.0], [0.0, 0.0]]), times=np.zeros(2))),
            inputs=lambda times: None, rates=np.array([[9.0, 9.0], [3.0, 4.0]]),
        ),
        about(
            linearisation=about(stretch=about(states=np.array([[2.0], [0.0]]), times=np.zeros(1))),
            inputs=lambda times: None, rates=np.array([[9.0], [0.0]]),
        ),
    ]  # fmt: skip
    term = about(
        name="x", equation=1, common=True, text="x", scale=1.0, values=lambda states, inputs: states[0]
    )
    found = _missing_force(about(states=("x", "v")), cast(Any, motions), cast(Any, term), 0, scored)
    assert (found.name, found.place, found.common) == ("x", "dv/dt", True)
    assert [found.t, found.coefficient] == pytest.approx([3.0, 2.0]) and found.stderr == pytest.approx(2 / 3)
    assert found.share == pytest.approx(2.0 * np.sqrt(9.0 / 25.0))
    for motion in motions:
        motion.rates = np.zeros((2, 2))
    assert (
        _missing_force(about(states=("x", "v")), cast(Any, motions), cast(Any, term), 0, scored).share == 0.0
    )


def test_given_a_fault_of_a_channel_then_its_share_and_what_it_does_to_the_unknowns_are_counted() -> None:
    scored = Scores(
        np.array([0.0, -6.0]), np.diag([1.0, 3.0]), np.diag([1.0, 4.0]), np.ones(2, bool),
        np.array([[7.0, 0.5], [7.0, -2.0]]), 1e6,
    )  # fmt: skip
    found = _missing(scored, 1, "delay", "x", 16.0, 64.0)
    assert [found.t, found.coefficient, found.stderr] == pytest.approx([-3.0, -2.0, 2 / 3])
    assert found.share == pytest.approx(1.0) and found.shift == pytest.approx((1.0, -4.0))
    assert _missing(scored, 1, "delay", "x", 16.0, 0.0).share == 0.0


def test_given_a_tone_then_its_share_of_the_spread_is_said_as_rms() -> None:
    words = tone_words("x", Tone(2.5, 0.3, 1e-9), 0.5)  # 0.3/sqrt(2)/0.5 = 0.424
    assert "a tone at 2.5 cycles per unit of time, amplitude 0.3 (42 % of its spread)" in words
    assert "(nan %" in tone_words("x", Tone(2.5, 0.3, 1e-9), 0.0)


def test_given_a_motion_then_a_line_that_its_own_make_together_is_its_own() -> None:
    k = np.arange(4000)
    noise = 1e-3 * np.random.default_rng(4).standard_normal(4000)
    two = np.cos(TURN * 101.25 * k / 4000) + 0.3 * np.cos(TURN * 163.0 * k / 4000) + noise
    assert _own_lines(two) == pytest.approx([101.25, 163.0], abs=0.26)
    one = np.cos(TURN * 101.25 * k / 4000) + noise
    assert _own_lines(one) == pytest.approx([101.25])
    close = np.cos(TURN * 100.0 * k / 4000) + 0.5 * np.cos(TURN * 103.25 * k / 4000) + noise
    assert _own_lines(close) == pytest.approx([100.0, 103.25])  # three lines belong to each

    def own(row: np.ndarray, place: float) -> bool:
        return of_the_motion(row, place / (4000 * 0.1), 0.1)

    assert own(two, 2 * 163.0 - 101.25) and own(two, 163.0 - 101.25) and own(two, 101.25)
    assert own(two, 2 * 163.0 - 101.25 + 2.5) and not own(two, 2 * 163.0 - 101.25 + 4.0)
    assert own(one, 3 * 101.25) and own(one, 101.25 / 2) and not own(one, 130.0)
    assert not own(two, 101.25 / 2)  # of two lines no halves are listed
    many = sum(np.cos(TURN * f * k / 4000 + f) for f in (50.0, 101.0, 163.0, 290.0)) + noise
    assert own(many, 500.0)  # nobody can tell
    assert not own(noise, 101.25)
    dying = np.exp(-k / 1500.0) * one
    assert not own(dying, 101.25)
    lasting = np.exp(-k / 4000.0) * one  # the last quarter keeps 0.47 of the first
    assert own(lasting, 101.25)


def evidence_of(**given: Any) -> Evidence:
    plain = dict.fromkeys(Evidence.__dataclass_fields__) | {
        "inputs": ("f",), "outputs": ("x",), "missing": [], "tones": {}, "noise": {}, "white": {},
        "input_trace": 1.0, "drive": 1.0,
    }  # fmt: skip
    return Evidence(**cast(Any, plain | given))


def test_given_each_test_then_it_speaks_from_one_in_a_thousand_on_and_with_its_number() -> None:
    quiet = SensorNoise(0.2, 0.1, "given", False, 0, 0.1)
    loud = SensorNoise(0.25, 0.1, "differences", True, 2, 0.1)
    white, coloured = Whiteness(0.0011, 40, 0.1, 0.2, 3), Whiteness(0.0009, 40, 0.1, 0.31, 7)
    assert (
        evidence_of(noise={"x": quiet}, white={"x": white}, input_trace=0.0011, drive=0.0011).against() == []
    )
    words = evidence_of(
        noise={"x": loud}, white={"x": coloured}, input_trace=0.0009, tones={"x": "a tone"}, drive=0.0009
    ).against()
    assert words == [
        "What is left of x is 2.50 times the noise that its samples show (0.1).",
        "What is left of x is not white: p = 0.0009 over 40 lags, correlation 0.31 at lag 7.",
        "a tone",
        "What is left follows the inputs of the past (p = 0.0009).",
        "The motion asks for another drive than f shows (p = 0.0009).",
    ]
    one = SensorNoise(0.2, 0.1, "given", False, 1, 0.1)
    assert evidence_of(noise={"x": one}).notes() == ["1 sample of x lies far outside the rest."]
    assert evidence_of(noise={"x": loud}).notes() == ["2 samples of x lie far outside the rest."]
    assert evidence_of(noise={"x": quiet}).notes() == []
    sure = [
        Missing("x^3", "dv/dt", -5.0, 1.0, 0.2, 0.0213, limit=4.9),
        Missing("x", "dv/dt", 4.0, 1, 1, 1, limit=4.9),
    ]
    assert evidence_of(missing=sure).lacking == sure[:1]
    assert evidence_of(missing=sure).against() == [
        "A term x^3 in dv/dt would explain part of what is left (t = 5.0, 2.13 % of the force)."
    ]
    moved = (0.1,)
    offset = Missing("offset", "x", 5.0, 1.0, 0.2, 0.1, limit=4.0, shift=moved)
    assert evidence_of(missing=[offset]).moves == []
    late = Missing("delay", "x", 5.0, 1.0, 0.2, 0.1, limit=4.0, shift=moved)
    assert evidence_of(missing=[late]).moves == [late]
    induced = Missing("di/dt", "V", 5.0, 1.0, 0.2, 0.0213, limit=4.0, shift=moved)
    assert evidence_of(missing=[induced]).moves == [induced]
    slow = Missing("high-pass", "x", 4.5, 0.9, 0.2, 0.1, limit=4.0, shift=moved, scale=0.5)
    assert evidence_of(missing=[late, slow, offset]).moves == [late, slow, offset]
    weak = replace(late, t=6.1)  # of which the high-pass explains less than three quarters
    assert evidence_of(missing=[weak, slow, offset]).moves == [weak]
    assert "time constant near 2.2 (t = 4.5)" in evidence_of(missing=[slow]).against()[0]
    assert len(evidence_of(missing=[sure[0], slow]).moves) == 1
    assert missing_words(induced, []).endswith("(t = 5.0, 2.13 % of V).")
    assert evidence_of(missing=[sure[0], late]).fault is None  # another term explains more
    assert missing_words(sure[0], ["x", "v"]).endswith("; so would x, v.")
    assert [_percent(s) for s in (0.0213, 0.5, 0.995, 0.99995)] == ["2.13 %", "50 %", "99.50 %", "99.9950 %"]


@pytest.mark.parametrize(
    ("value", "guess", "error", "said"),
    [
        (101.0, 1.0, 1.0, "is 101 times its guess 1"),
        (99.0, 1.0, 1.0, ""),
        (0.0099, 1.0, 0.001, "is 1/101 of its guess 1"),
        (0.0101, 1.0, 0.001, ""),
        (-101.0, 1.0, 1.0, "is 101 times"),
        (101.0, 0.0, 1.0, ""),
        (101.0, 1.0, 102.0, ""),  # known to no better than its size
    ],
)
def test_given_a_value_that_is_known_then_a_hundred_times_its_guess_is_worth_a_sentence(
    value: float, guess: float, error: float, said: str
) -> None:
    fitted = fitted_of(
        unknowns=[unknown("k")], estimate=np.array([value]), information=np.array([[error**-2]]),
        experiment=about(
            model=about(parameters={"k": about(value=guess)}, equations=about(functions={}))
        ),
    )  # fmt: skip
    words = _far_from_guess(fitted)
    assert len(words) == bool(said) and all(said in w for w in words)


def test_given_a_motion_or_estimate_that_is_not_finite_then_nothing_is_judged() -> None:
    model = about(parameters={"k": about(value=1.0)}, equations=about(functions={}))
    for estimate, states in ((np.array([np.nan]), np.zeros((1, 3))), (np.ones(1), np.array([[0.0, np.inf]]))):
        fitted = fitted_of(
            estimate=estimate, pieces=(about(states=np.zeros((1, 3))), about(states=states)), dof=5,
            information=np.array([[4.0]]), input_covariance=np.array([[0.5]]), unknowns=[unknown("k")],
            experiment=about(model=model),
        )  # fmt: skip
        found = judge(fitted)
        assert found.verdict == "cannot tell"
        assert found.covariance == pytest.approx(np.array([[0.75]]))
        assert found.quantile == pytest.approx([1.959964], rel=1e-6)


def test_given_coloured_noise_and_uncertain_inputs_then_both_are_in_the_errors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from analysis.estimate.finish import errors as errors_module

    whole = Regression(np.random.default_rng(5).standard_normal((1, 800)), np.ones((1, 800, 1)))
    fitted = fitted_of(
        estimate=np.array([3.0]), information=np.array([[800.0]]), input_covariance=np.array([[0.3]]),
        dof=799, chi2=800.0,
        experiment=about(runs=[None], noise_known=False, model=about(outputs=("x",))),
    )  # fmt: skip
    parts: Any = None
    monkeypatch.setattr(errors_module, "_parts", lambda *_: parts)

    def bars(process: Autoregression, lacking: list[Any]) -> ErrorBars:
        evidence = about(moves=[], lacking=lacking, processes=[process], regressions=[whole])
        return error_bars(fitted, evidence, SILENT)

    red = Autoregression(np.array([-0.5]), 1.0)
    found = bars(red, [])
    assert found.kind == "coloured" and found.tests == {} and found.parts == 0
    assert found.supporting() == []
    # the variance of a mean of red noise: v/(1 - a)^2/N, less the ends
    assert found.errors.covariance[0, 0] == pytest.approx(4.0 / 800 + 0.3, rel=1e-3)
    white = Autoregression(np.zeros(0), 1.0)
    assert bars(white, []).errors.covariance[0, 0] == pytest.approx(1 / 800 + 0.3)
    parts = ([whole], fitted.estimate)  # a single part has nothing to agree with
    assert bars(white, [None]).kind == "ideal"


@pytest.mark.parametrize("short", [0, 1])
def test_given_stretches_of_one_sample_then_they_count_in_the_power_and_in_no_pair(short: int) -> None:
    rng = np.random.default_rng(6)
    e = np.convolve(rng.standard_normal(900), [1.0, 0.9], "valid")
    gappy = np.concatenate([e, [np.nan, 3.0] * short])
    found = fit_autoregression([gappy])
    plain = fit_autoregression([e])
    assert found.order == plain.order > 1
    assert found.coefficients == pytest.approx(plain.coefficients, rel=1e-9)
    power = (e @ e + 9.0 * short) / (len(e) + short)
    assert found.variance / plain.variance == pytest.approx(power / np.mean(e**2))


def test_given_outputs_with_gaps_then_the_misfit_is_that_of_what_was_seen() -> None:
    outputs = np.array([[0.0, np.nan, 1.0, 2.0], [5.0, 5.0, 5.0, np.nan]])
    residuals = np.array([[np.nan, 2.0, 4.0], [3.0, 6.0, np.nan]])
    piece = about(run=about(outputs=outputs), record=0, first=1, stop=4, residuals=residuals)
    fitted = fitted_of(pieces=(piece, piece))
    assert misfit(fitted, np.array([[2.0, 3.0]])) == pytest.approx(2 * (1 + 4 + 1 + 4))
    lost = about(**{**vars(piece), "residuals": np.where(residuals == 4.0, np.nan, residuals)})
    assert misfit(fitted_of(pieces=(piece, lost)), np.ones((1, 2))) == np.inf  # a motion that ran away


def test_given_a_second_set_of_numbers_then_it_is_another_from_four_errors_and_two_per_cent_on() -> None:
    problem = about(unknowns=about(current=lambda values: values))

    def apart(there: list[float], errors: list[float]) -> list[int]:
        here = about(values=np.array([1.0, -2.0, 5.0]))
        return _apart(
            problem, here, about(values=np.array(there)), np.array(errors), [0, 1], np.full(3, np.inf)
        )

    assert apart([1.41, -2.0, 9.0], [0.1, 0.1, 0.1]) == [0]
    assert apart([1.39, -2.0, 9.0], [0.1, 0.1, 0.1]) == []
    assert apart([1.021, -2.041, 5.0], [1e-6, 1e-6, 1.0]) == [0, 1]
    assert apart([1.019, -2.039, 5.0], [1e-6, 1e-6, 1.0]) == []
    assert apart([1.5, 2.0, 5.0], [0.1, 0.1, 0.1]) == []  # a mirror
    C = np.array([[0.04, 0.01], [0.01, 0.09]])
    fitted = fitted_of(information=np.linalg.inv(np.block([[C, np.zeros((2, 1))], [np.zeros((1, 2)), 1.0]])))
    here, there = about(values=np.array([1.0, 2.0, 3.0])), about(values=np.array([2.0, 1.0, 9.0]))
    away = np.array([1.0, -1.0])
    promised = _promised(fitted, problem, cast(Any, here), cast(Any, there), [0, 1])
    assert promised == pytest.approx(away @ np.linalg.solve(C, away))
    assert _promised(fitted, problem, cast(Any, here), cast(Any, there), [1]) == pytest.approx(1 / 0.09)
