"""Parameters from curves made by closed forms and by simulation, with errors that must hold them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.dynamics.imposed import DecayingMotions, ImposedMotion, ImposedMotions
from analysis.estimate.curves import _Fit, identify_curves
from analysis.experiment.curves import MeasuredCurve, MeasuredDecay
from analysis.model import Model
from analysis.validation.curves import check_curves
from drivers.formats.curves import is_curve, read_curve, write_curve

Array = NDArray[np.float64]

TEXT = """
name = "Beam"
[states]
x = "v"
v = "(-c*v - k1*x - k3*x**3 - k5*x**5 + f)/m"
[inputs]
f = "measured"
[parameters]
m = 0.5
c = { guess = 0.3, lower = 0, upper = 10 }
k1 = { guess = 15.0, lower = 0, upper = 1e3 }
k3 = { guess = 10.0, lower = 0, upper = 1e4 }
k5 = 0.0
"""
TRUTH = {"c": 0.2, "k1": 20.0, "k3": 30.0}
NOISE = {"frequency": 2e-5, "amplitude": 0.003, "force": 0.003, "phase": 0.004}  # relative; rad


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.from_toml(TEXT)


def _clean(model: Model, **values: float) -> MeasuredCurve:
    """The response at 1.2 Hz over the force, through both folds, and some of a backbone."""
    true = model.with_values({**TRUTH, **values})
    solver, p = ImposedMotions(true, "x"), true.values()
    frequency = np.concatenate([np.full(16, 1.2), np.linspace(1.05, 1.5, 8)])
    amplitude = np.concatenate([np.linspace(0.05, 0.75, 16), np.linspace(0.3, 0.9, 8)])
    found: list[ImposedMotion] = []
    for f, a in zip(frequency, amplitude, strict=True):
        motion = solver.solve(p, float(f), float(a))
        assert motion is not None
        found.append(motion)
    force = np.array([m.force for m in found])
    return MeasuredCurve(frequency, amplitude, -np.angle(force), np.abs(force), output="x")


def _noisy(clean: MeasuredCurve, seed: int) -> MeasuredCurve:
    rng = np.random.default_rng(seed)
    errors = {n: NOISE[n] * getattr(clean, n) for n in ("frequency", "amplitude", "force")}
    errors["phase"] = np.full(len(clean), NOISE["phase"])
    drawn = {n: getattr(clean, n) + e * rng.standard_normal(len(clean)) for n, e in errors.items()}
    return replace(clean, **drawn, **{f"{n}_error": np.abs(e) for n, e in errors.items()})


@pytest.fixture(scope="module")
def clean(model: Model) -> MeasuredCurve:
    return _clean(model)


def test_when_curves_pass_through_folds_then_the_parameters_come_with_errors_that_hold_them(
    model: Model, clean: MeasuredCurve
) -> None:
    inside, total, misfit = 0, 0, []
    for seed in range(14):
        found = identify_curves(model, [_noisy(clean, seed)])
        assert found.converged and found.verdict == "fits", found
        misfit.append(found.residual.per_dof)
        for name, value in TRUTH.items():
            inside += found.parameters[name].covers(value)
            total += 1
            assert found.parameters[name].value == pytest.approx(value, rel=0.03)
    assert inside / total >= 0.85 and 0.7 < np.mean(misfit) < 1.3


def test_when_a_term_is_missing_then_the_verdict_says_so_and_the_errors_widen(model: Model) -> None:
    found = identify_curves(model, [_noisy(_clean(model, k5=60.0), 1)])
    assert found.verdict in ("close", "misses") and found.residual.per_dof > 3
    right = identify_curves(model, [_noisy(_clean(model), 1)])
    assert found.parameters["k3"].stderr > 3 * right.parameters["k3"].stderr


@pytest.mark.parametrize("units", [(1.0, 1e-12), (1e9, 1.0)])
def test_when_a_model_misses_the_curve_then_errors_widen_alike_in_any_units(
    units: tuple[float, float],
) -> None:
    rng = np.random.default_rng(3)
    J, r = rng.standard_normal((80, 2)), np.repeat(rng.standard_normal(8), 10)  # whole stretches are missed
    fit: Any = SimpleNamespace(columns=[0, 1])

    def widened(jacobian: Array) -> Array:
        own = np.linalg.inv(J.T @ J) * np.outer(jacobian[0] / J[0], jacobian[0] / J[0]) ** -1.0
        return _Fit._widened(fit, own, r, jacobian, 1.0, False, True)

    one, other = widened(J), widened(J * units)
    assert other * np.outer(units, units) == pytest.approx(one, rel=1e-6)
    assert np.all(np.diag(one) > 2 * np.diag(np.linalg.inv(J.T @ J)))


@pytest.mark.parametrize(("told", "factor"), [(True, 1.0), (False, 0.25)])
def test_given_less_scatter_than_was_expected_then_errors_shrink_only_where_none_were_told(
    told: bool, factor: float
) -> None:
    fit: Any = SimpleNamespace(columns=[0, 1])
    own = np.array([[4.0, 1.0], [1.0, 9.0]])
    found = _Fit._widened(fit, own, np.zeros(8), np.zeros((8, 2)), 0.25, True, told)
    assert found == pytest.approx(factor * own)


@pytest.mark.parametrize("left_out", ["phase", "force"])
def test_when_phase_or_force_were_not_measured_then_the_rest_is_enough_or_it_is_said(
    model: Model, clean: MeasuredCurve, left_out: str
) -> None:
    nothing = {left_out: np.full(len(clean), np.nan), f"{left_out}_error": np.full(len(clean), np.nan)}
    found = identify_curves(model, [replace(_noisy(clean, 3), **nothing)])
    assert found.converged and found.verdict == "fits"
    for name, value in TRUTH.items():  # the mass, to which a phase alone tells ratios, is known
        assert abs(found.parameters[name].value - value) < 4 * found.parameters[name].stderr
        assert found.parameters[name].value == pytest.approx(value, rel=0.03)


def test_when_a_guess_leads_nowhere_then_the_search_does_not_call_itself_converged(
    clean: MeasuredCurve,
) -> None:
    far = TEXT.replace("guess = 10.0", "guess = 200.0").replace("guess = 15.0", "guess = 60.0")
    found = identify_curves(Model.from_toml(far), [_noisy(clean, 3)])
    assert not found.converged and not found.usable


def test_when_a_bound_excludes_the_truth_then_the_parameter_stands_at_it_and_that_is_said(
    clean: MeasuredCurve,
) -> None:
    found = identify_curves(Model.from_toml(TEXT.replace("upper = 1e4", "upper = 25")), [_noisy(clean, 3)])
    assert found.parameters["k3"].value == 25.0 and "k3 stands at a bound." in found.warnings
    assert found.verdict == "misses"


def test_given_curves_without_noise_then_the_parameters_are_exact(model: Model, clean: MeasuredCurve) -> None:
    found = identify_curves(model, [clean])
    assert found.converged and found.iterations < 10
    assert [e.value for e in found.parameters.values()] == pytest.approx(list(TRUTH.values()), rel=1e-12)
    assert found.model_text == model.with_values(found.values()).to_toml()
    assert found.extra == {"points": 24} and found.residual.dof == 48 - 3


def test_when_no_errors_are_told_then_they_come_from_the_scatter(model: Model, clean: MeasuredCurve) -> None:
    noisy = _noisy(clean, 5)
    bare = MeasuredCurve(noisy.frequency, noisy.amplitude, noisy.phase, noisy.force, output="x")
    found, known = identify_curves(model, [bare]), identify_curves(model, [noisy])
    assert found.verdict == "fits" and "tell no errors" in found.warnings[0]
    for name, value in TRUTH.items():
        assert 0.3 < found.parameters[name].stderr / known.parameters[name].stderr < 4
        assert abs(found.parameters[name].value - value) < 4 * found.parameters[name].stderr


def test_when_a_backbone_alone_is_given_then_a_combination_is_not_determined(model: Model) -> None:
    """Phase resonance without a force says nothing of the mass's scale: m, k1 and k3 go together."""
    true = model.with_values(TRUTH)
    solver, p = DecayingMotions(true, "x"), true.values()
    amplitude = np.linspace(0.1, 0.8, 10)
    frequency = []
    for a in amplitude:
        f = 1.05
        for _ in range(12):
            motion = solver.solve(p, f, float(a))
            assert motion is not None
            f -= motion.force.real / motion.by_frequency.real
        frequency.append(f)
    nothing = np.full(10, np.nan)
    bone = MeasuredCurve(np.array(frequency), amplitude, np.full(10, -np.pi / 2), nothing, output="x")
    found = identify_curves(model.with_free(["k1", "k3"]).with_values({"c": 0.2}), [bone])
    assert found.parameters["k3"].value == pytest.approx(30, rel=1e-4)
    lost = identify_curves(model.with_free(["m", "k1", "k3"]).with_values({"c": 0.2}), [bone])
    assert lost.verdict == "cannot tell" and "do not determine k1, k3, m" in lost.undetermined[0], (
        lost.undetermined
    )
    assert all(e.stderr == np.inf and e.lower == -np.inf for e in lost.parameters.values())


def _decay(seed: int) -> MeasuredDecay:
    """A free motion integrated here (Runge-Kutta), its fundamental over single turns."""
    rng, h = np.random.default_rng(seed), 2e-3
    x, v = 0.8, 0.0
    path = np.empty(9000)

    def slope(x: float, v: float) -> float:
        return (-0.2 * v - 20 * x - 30 * x**3) / 0.5

    for i in range(len(path)):
        path[i] = x
        a1 = slope(x, v)
        x2, v2 = x + 0.5 * h * v, v + 0.5 * h * a1
        a2 = slope(x2, v2)
        x3, v3 = x + 0.5 * h * v2, v + 0.5 * h * a2
        a3 = slope(x3, v3)
        x4, v4 = x + h * v3, v + h * a3
        x, v = x + h / 6 * (v + 2 * v2 + 2 * v3 + v4), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + slope(x4, v4))
    t = np.arange(len(path)) * h
    up = np.flatnonzero((path[:-1] < 0) & (path[1:] >= 0))
    cross = t[up] - path[up] * h / (path[up + 1] - path[up])
    times, sizes, pitches = [], [], []
    for begin, end in zip(cross[:-2], cross[2:], strict=True):  # two turns: even in the decay's first order
        phase = np.linspace(0, 4 * np.pi, 400, endpoint=False)
        window = 1 - np.cos(phase / 2)
        row = np.interp(begin + (end - begin) * phase / (4 * np.pi), t, path)
        sizes.append(2 * abs(np.mean(window * row * np.exp(-1j * phase))))
        times.append(0.5 * (begin + end))
        pitches.append(2 / (end - begin))
    keep = slice(1, None, 2)
    size, pitch = np.array(sizes)[keep], np.array(pitches)[keep]
    size_error, pitch_error = 0.004 * size, 1e-3 * pitch
    return MeasuredDecay(
        np.array(times)[keep], size + size_error * rng.standard_normal(len(size)),
        pitch + pitch_error * rng.standard_normal(len(size)), size_error, pitch_error, "x",
    )  # fmt: skip


def test_when_a_motion_dies_out_then_stiffness_and_damping_come_from_its_decay(model: Model) -> None:
    found = identify_curves(model, [_decay(1)])
    assert found.converged and found.verdict in ("fits", "close"), found
    for name, value in TRUTH.items():
        assert abs(found.parameters[name].value - value) < 3.5 * found.parameters[name].stderr
        assert found.parameters[name].value == pytest.approx(value, rel=0.03)


def test_when_a_table_is_written_then_it_reads_back_and_other_tables_are_understood(
    tmp_path: Path, clean: MeasuredCurve
) -> None:
    noisy = _noisy(clean, 2)
    path = tmp_path / "curve.csv"
    write_curve(noisy, path, {"amplitude": "m", "force": "N"}, {"stability": ["stable"] * len(noisy)})
    back = read_curve(path, "x")
    assert isinstance(back, MeasuredCurve) and is_curve(path)
    for name in ("frequency", "amplitude", "phase", "force", "phase_error"):
        assert np.allclose(getattr(back, name), getattr(noisy, name), rtol=1e-8)
    other = tmp_path / "other.txt"
    other.write_text(
        "# from elsewhere\nfreq [rad/s];amplitude;phase [deg];force\n6.2831853;0.1;-90;0.5\n12.6;0.2;-45;\n"
    )
    found = read_curve(other)
    assert isinstance(found, MeasuredCurve)
    assert found.frequency[0] == pytest.approx(1.0) and found.phase[1] == pytest.approx(-np.pi / 4)
    assert np.isnan(found.force[1])
    for text, said in {
        "frequency,amplitude,phase\n1,1,-90\n": "phase in degrees",
        "frequency,amplitude\n1,1\n": "needs a force or a phase",
        "frequency,amplitude,force\n1,-1,1\n": "positive numbers",
        "frequency,amplitude,force\n1,one,1\n": "is no number",
        "frequency,amplitude,force\n": "header and rows",
        "frequency [furlong],amplitude,force\n1,1,1\n": "unit",
    }.items():
        other.write_text(text)
        with pytest.raises(DataError, match=said):
            read_curve(other)
    (tmp_path / "record.csv").write_text("t,x\n0,1\n1,2\n")
    assert not is_curve(tmp_path / "record.csv")


def test_when_the_model_has_no_force_or_nothing_to_identify_then_one_sentence(
    model: Model, clean: MeasuredCurve
) -> None:
    with pytest.raises(ModelError, match="no parameter to be identified"):
        identify_curves(model.with_free([]), [clean])
    with pytest.raises(DataError, match="too few"):
        identify_curves(model, [clean.taken([3])])


def test_when_a_model_is_validated_by_a_curve_then_the_right_one_passes_and_a_wrong_one_fails(
    model: Model, clean: MeasuredCurve
) -> None:
    noisy = _noisy(clean, 8)
    right = check_curves(model, TRUTH, [noisy])
    assert right.status == "passed" and right.numbers["over errors"] < 1.5
    wrong = check_curves(model, {**TRUTH, "k3": 36.0}, [noisy])
    assert wrong.status == "failed" and "misses" in wrong.sentence
    assert check_curves(model, {**TRUTH, "k3": 30.3}, [noisy]).numbers["over errors"] > 1.2
    assert check_curves(model, TRUTH, []).status == "not possible"
    assert check_curves(model, TRUTH, [replace(noisy, output="y")]).status == "not possible"


def test_given_the_units_of_a_table_then_those_of_another_size_levels_and_ratios_are_refused(
    tmp_path: Path, clean: MeasuredCurve
) -> None:
    text = TEXT + '[units]\nx = "m"\nf = "N"\n'
    path = tmp_path / "lab.csv"
    write_curve(clean, path, {"amplitude": "mm", "force": "N"}, {})
    told = read_curve(path)
    assert isinstance(told, MeasuredCurve) and (told.amplitude_unit, told.force_unit) == ("mm", "N")
    with pytest.raises(DataError, match=r"lab.csv has its amplitude in mm, the model 'x' in m: write one"):
        identify_curves(Model.from_toml(text), [told])
    check = check_curves(Model.from_toml(text), TRUTH, [told])
    assert check.status == "not possible" and "in mm" in check.sentence
    for title, said in {
        "amplitude [dB],force": "amplitude is in dB",
        "amplitude,force [dB re 1 N]": "force is in dB",
        "amplitude [mm/N],force": "over the force",
    }.items():
        path.write_text(f"frequency,{title}\n1,2,3\n")
        with pytest.raises(DataError, match=said):
            read_curve(path)


def test_given_titles_and_numbers_as_other_laboratories_write_them_then_they_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "lab.txt"
    path.write_text("f/Hz;amplitude/mm;phase lag/deg;F/N\n1,5;0,25;90;0,5\n1,6;0,5;45;0,75\n")
    found = read_curve(path)
    assert isinstance(found, MeasuredCurve) and is_curve(path)
    assert np.allclose(found.frequency, [1.5, 1.6]) and np.allclose(found.amplitude, [0.25, 0.5])
    assert np.allclose(found.phase, [-np.pi / 2, -np.pi / 4]) and np.allclose(found.force, [0.5, 0.75])


def test_when_a_lag_is_counted_as_positive_then_it_is_asked_and_no_negative_damping_is_called_right(
    clean: MeasuredCurve,
) -> None:
    """-0.2 met the curve as well as 0.2 does; a specimen that drives itself has a guess that says so."""
    unbounded = TEXT.replace(", lower = 0, upper = 10 ", "")
    noisy = _noisy(clean, 11)
    turned = replace(noisy, phase=-noisy.phase)
    found = identify_curves(Model.from_toml(unbounded), [turned])
    assert found.verdict == "cannot tell" and "phase lag" in found.reasons[0]
    assert identify_curves(Model.from_toml(unbounded), [noisy]).verdict == "fits"
    own = Model.from_toml(unbounded.replace("c = { guess = 0.3", "c = { guess = -0.3"))
    meant = identify_curves(own, [turned])
    assert meant.verdict == "fits" and meant.parameters["c"].value == pytest.approx(-0.2, rel=0.03)
