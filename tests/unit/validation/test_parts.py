"""Parts of the validation that decide or draw something, numbers by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from analysis.base.errors import ShakedownError
from analysis.base.progress import SILENT
from analysis.orbits.orbit import PeriodicOrbit
from analysis.reconstruct.exponents import LargestExponent
from analysis.validation import bifurcation, exponents, orbits, response, verdict
from analysis.validation.check import Check
from analysis.validation.section import _panels
from analysis.validation.verdict import judged


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
    spectrum: Any = SimpleNamespace(exponents=np.array([0.1, -0.2]), stderr=np.array([0.01, 0.02]), remark="")
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


def test_given_runs_of_which_half_escape_then_the_spectrum_is_the_mean_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[int] = []

    def spectrum(model: Any, *_: Any, initial: np.ndarray, **__: Any) -> Any:
        number = int(initial[0])
        if number < escaping:
            raise ShakedownError("escapes")
        ended.append(number)
        return SimpleNamespace(
            exponents=np.array([number, -1.0]), duration=2.0, final_state=initial, left_chaos=left.get(number)
        )

    monkeypatch.setattr(exponents, "lyapunov_spectrum", spectrum)
    subject: Any = SimpleNamespace(
        driven=True, escapes=False, base=1.0, origin=0.0, states=np.arange(8.0)[None],
        places=lambda count: np.arange(count),
    )  # fmt: skip
    escaping, left = 4, {6: 1.0, 7: 1.5}
    found = exponents.model_spectrum(subject, SILENT)
    assert found is not None and ended == [4, 5, 6, 7]
    assert found.exponents == pytest.approx([5.5, -1.0])
    assert found.stderr == pytest.approx([np.std([4, 5, 6, 7], ddof=1) / 2, 0.0])
    assert found.regular == 2 and "2 of 4 runs left chaos" in found.remark
    assert found.duration == 8.0 and found.final_state.tolist() == [7.0]
    escaping = 5
    assert exponents.model_spectrum(subject, SILENT) is None


def check(name: str, status: Any, share: float = 0.0) -> Check:
    return Check(name, name.title(), status, "", {"systematic_of_spread": share})


@pytest.mark.parametrize(
    ("statuses", "accepted", "words"),
    [
        ("ppp", True, "The model is validated: 3 of 3 checks passed."),
        ("ppd", True, "The model is validated: 2 of 3 checks passed, with doubts about c."),
        ("pdd", False, "there are doubts about b and c, 1 of 3 checks passed."),
        ("pdn", False, "there are doubts about b, 1 of 2 checks passed."),
        ("pff", False, "The model is NOT validated: b and c failed, 1 of 3 checks passed."),
        ("fff", False, "The model is NOT validated: a, b and c failed, 0 of 3 checks passed."),
        ("nnn", False, "Nothing could be checked."),
    ],
)
def test_given_checks_then_a_failure_or_doubts_that_prevail_refuse_the_model(
    statuses: str, accepted: bool, words: str
) -> None:
    every = {"p": "passed", "d": "doubtful", "f": "failed", "n": "not possible"}
    found = judged(tuple(check(name, every[s]) for name, s in zip("abc", statuses, strict=True)))
    assert found.passed == accepted
    assert found.verdict.endswith(words)


def test_given_residuals_that_are_not_noise_then_the_model_is_close_unless_that_was_stated() -> None:
    checks = (check("response", "passed"), check("residuals", "doubtful", 0.031))
    found = judged(checks)
    assert not found.passed and "its residuals hold 3.1 % of the motion" in found.verdict
    stated = judged(checks, 0.04)
    assert stated.passed and "beyond the 4 % that it misses, with doubts about residuals." in stated.verdict
    assert judged(checks, 0.0).verdict.endswith("nothing failed here, with doubts about residuals.")
    assert judged((check("response", "doubtful", 0.031), checks[0])).passed is False


def test_given_points_that_run_away_then_they_are_drawn_as_far_as_two_spans_beyond_the_measured_ones() -> (
    None
):
    subject: Any = SimpleNamespace(
        model=SimpleNamespace(states=("x",), parameters={"a": None}, unit=lambda name: "N"),
        forced=True, label=lambda name: name,
    )  # fmt: skip
    settings: Any = [
        SimpleNamespace(value=1.0, states=np.linspace(0.0, 1.0, 300)[None]),  # a span of 1
        SimpleNamespace(value=2.0, states=np.linspace(4.0, 7.0, 50)[None]),  # a span of 3
    ]
    grid = np.array([1.0, 1.5])
    points = np.array([[-5.9, 12.9], [-6.1, 13.1], [np.nan, 3.0]])
    panel = bifurcation._panel(subject, "a", settings, grid, points)
    model, measured = panel.traces
    assert panel.x_label == "a [N]" and panel.title == "Once a period"
    assert sorted(zip(model.x, model.y, strict=True)) == [(1.0, -5.9), (1.5, 3.0), (1.5, 12.9)]
    assert np.sum(measured.x == 1.0) == 200 and np.sum(measured.x == 2.0) == 50
    assert measured.y[measured.x == 1.0].min() == pytest.approx(100 / 299)  # the newest ones


def test_given_a_prediction_then_its_error_is_drawn_in_per_cent_beside_half_of_the_spread() -> None:
    subject: Any = SimpleNamespace(
        unit="s", label=lambda name: name, record=SimpleNamespace(marked=lambda t: ()),
        model=SimpleNamespace(equations=SimpleNamespace(driven=("t1",))),
    )  # fmt: skip
    times: Any = 0.1 * np.arange(50.0)
    measured = np.array([np.cos(times), times, np.sin(times)])
    found = response.Prediction(
        ("x", "t1", "y"), times, measured, measured + 0.5, np.arange(0, 50, 10), measured, np.ones(3),
        times[:10], np.array([np.linspace(0, 0.4, 10), np.zeros(10), np.linspace(0, 20.0, 10)]), 0.7,
    )  # fmt: skip
    x, y, error = response._panels(subject, found)
    assert (x.title, y.title) == ("x", "y")  # the drive's time is not a motion
    drawn, model = x.traces
    assert len(drawn.x) == 30 and drawn.y == pytest.approx(np.cos(times[:30]))  # three stretches
    assert np.flatnonzero(np.isnan(model.y)).tolist() == [0, 10, 20]
    curve, limit = error.traces
    assert curve.y[0] == 1e-4 and curve.y[1] == pytest.approx(100 * 20 / 9)
    assert curve.y[-1] == 1000.0  # at most ten spreads
    assert limit.y.tolist() == [50.0, 50.0] and limit.x == pytest.approx([0.0, 0.9])


@pytest.mark.parametrize("forced", [True, False])
def test_given_noisy_states_then_the_exponent_knows_their_noise_and_the_phase_of_the_drive(
    monkeypatch: pytest.MonkeyPatch, forced: bool
) -> None:
    asked: dict[str, Any] = {}

    def largest(points: np.ndarray, dt: float, region: Any, noise: float) -> LargestExponent:
        asked.update(points=points, dt=dt, region=region, noise=noise)
        return exponent(0.1)

    monkeypatch.setattr(exponents, "largest_exponent", largest)
    monkeypatch.setattr(exponents, "noise_levels", lambda points: np.array([0.03, 0.04]))
    subject: Any = SimpleNamespace(forced=forced, base=2.0, dt=0.05)
    states = np.random.default_rng(1).standard_normal((2, 500)) * [[3.0], [7.0]]
    assert exponents._estimate(subject, states, (0.1, 1.0)) is not None
    assert asked["dt"] == 0.05 and asked["region"] == (0.1, 1.0)
    assert asked["points"][:2].std(axis=1) == pytest.approx([1.0, 1.0])
    assert len(asked["points"]) == (4 if forced else 2)
    assert asked["noise"] == pytest.approx(0.05 / np.sqrt(len(asked["points"])))  # of a coordinate, rms
    if forced:
        cosine, sine = asked["points"][2:]
        assert cosine**2 + sine**2 == pytest.approx(np.full(500, cosine[0] ** 2))
        assert cosine[40] == pytest.approx(cosine[0]) and sine[10] == pytest.approx(cosine[0])
    infinite = LargestExponent(np.inf, 0.1, "", np.zeros(2), np.zeros(2), (0.0, 1.0), 1, "")
    monkeypatch.setattr(exponents, "largest_exponent", lambda *_, **__: infinite)
    assert exponents._estimate(subject, states) is None


@pytest.mark.parametrize(("fading", "largest"), [(False, 0.3), (True, 0.0)])
def test_given_the_models_exponents_then_the_largest_says_how_long_its_response_is_compared(
    monkeypatch: pytest.MonkeyPatch, fading: bool, largest: float
) -> None:
    asked: list[float] = []

    def response_of(subject: Any, exponent: float, progress: Any) -> Check:
        asked.append(exponent)
        return Check("response", "Response", "passed", "")

    for name in dir(verdict):
        if name.startswith("check_"):
            monkeypatch.setattr(verdict, name, lambda *_: Check("other", "Other", "passed", ""))
    other = Check("other", "Other", "passed", "")
    monkeypatch.setattr(verdict, "check_transfer", lambda *_: (other, None))
    monkeypatch.setattr(verdict, "check_response", response_of)
    monkeypatch.setattr(verdict, "read_subject", lambda *_: SimpleNamespace(fading=fading))
    monkeypatch.setattr(verdict, "rest_states", lambda _: [])
    spectrum = SimpleNamespace(exponents=np.array([0.3, 0.0, -0.9]))
    monkeypatch.setattr(verdict, "model_spectrum", lambda *_: spectrum)
    assert verdict.validate(model=None, record=None, values={}).passed  # type: ignore[arg-type]
    assert asked == [largest]


def test_given_a_signal_about_a_mean_then_the_models_line_is_drawn_unless_it_leaves() -> None:
    """Measured between 99 and 101: what is 6 or more from the mean is not drawn."""
    times = np.arange(8.0)
    measured = 100.0 + np.array([[1.0, -1.0] * 4])
    restarted = measured + np.array([[0.0, 0.1, 0.0, 0.1, 0.0, 8.0, -9.0, 0.1]])
    found = response.Prediction(
        ("x",),
        times,
        measured,
        restarted,
        np.array([0]),
        measured,
        np.ones(1),
        times,
        np.zeros((1, 8)),
        np.inf,
    )
    subject: Any = SimpleNamespace(
        unit="s",
        label=lambda name: name,
        model=SimpleNamespace(equations=SimpleNamespace(driven=())),
        record=SimpleNamespace(marked=lambda t: ()),
    )
    drawn = response._panels(subject, found)[0].traces[1].y
    assert list(np.isfinite(drawn)) == [False, True, True, True, True, False, False, True]  # 0: a restart
