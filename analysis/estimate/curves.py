"""Parameters from measured curves: response curves, backbones, decays of amplitude, by continuation.

At each point the model is asked for the complex force that a motion of the measured frequency and amplitude
needs (analysis.dynamics.imposed): one answer on stable and unstable branches and at folds alike. What it
misses of the measured force is weighed by the errors of force and phase, and by those of frequency and
amplitude through the model's own slopes. A decay is compared by its frequencies, and by the times at which
the model passes the measured amplitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Estimate, Identification, Residual
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.dynamics.imposed import DecayingMotion, DecayingMotions, ImposedMotion, ImposedMotions
from analysis.estimate.identifiability import pseudo_inverse
from analysis.experiment.curves import MeasuredCurve, MeasuredDecay
from analysis.experiment.units import check_curve_units
from analysis.model import Model

Array = NDArray[np.float64]

METHOD = "curves"
ASSUMED = {"frequency": 1e-4, "amplitude": 0.01, "force": 0.01}  # relative errors where none are told
ASSUMED_PHASE = 0.02  # rad
GRID = 12  # amplitudes of a decay at which the model is asked
STEP = 1e-5  # of a parameter, for the slopes of decays
BLOCKS = 8
RANK = 1e-9  # eigenvalue of the scaled Gram matrix below which a combination is not determined
CHANCE = 1e-3
CLOSE_SHARE = 0.03  # of the force that a model called `close` may miss
SAME_CHI2 = 4.0  # by which a change of sign must raise the sum of squares to be told
OUTER = 6  # times the weights are computed anew
MOVED = 0.02  # standard errors by which the parameters may still move with them
_MOST_STEPS = 60
_SETTLED = 1e-6
_MOST_DAMPING = 1e6  # of a descent: beyond it no direction leads down
_TAKES_PART = 0.05  # of a direction that the data leave free, from which on an unknown is named


@dataclass(frozen=True, eq=False)
class _Rows:
    """Whitened residuals, their derivatives by the free parameters, and what is missed in the data's unit."""

    residual: Array
    jacobian: Array
    missed: float  # sum of squares of what is missed
    total: float  # of what was measured
    prior: int = 0  # rows that are no data but what is known of a skew


class _CurveData:
    """One response curve or backbone beside the model."""

    def __init__(self, model: Model, curve: MeasuredCurve) -> None:
        self.curve = curve
        self._solver = ImposedMotions(model, curve.output or model.outputs[0])
        self._motions: list[ImposedMotion | None] = [None] * len(curve)
        self._weights: list[Array] = [np.empty(0)] * len(curve)
        self._order = np.lexsort((curve.amplitude, np.round(curve.frequency, 2)))
        told = _finite_errors(curve)
        self.told = told
        self._errors = _errors(curve)
        # the skew of the two channels is common to all points: one unknown, as large as the phases' errors
        self.skewed = bool(np.isfinite(curve.phase).any() and np.isfinite(curve.force).any())
        self._skew_error = float(np.median(self._errors["phase"]) / np.median(2 * np.pi * curve.frequency))

    @property
    def units(self) -> tuple[str, str]:
        return self.curve.amplitude_unit, self.curve.force_unit

    def solve(self, p: Array) -> bool:
        """The motions at all points; False where the model has none somewhere."""
        near: ImposedMotion | None = None
        for i in self._order:
            c = self.curve
            start = self._motions[i] or near
            found = self._solver.solve(p, float(c.frequency[i]), float(c.amplitude[i]), start)
            if found is None:
                return False
            self._motions[i] = near = found
        return True

    def rows(self, columns: list[int], skew: float, fresh: bool) -> _Rows:
        """Residuals by free parameters and, in the last column, by the skew in s; ``fresh``: weighed anew."""
        c = self.curve
        residuals, slopes, missed, total = [], [], 0.0, 0.0
        for i, motion in enumerate(self._motions):
            assert motion is not None
            w = 2 * np.pi * c.frequency[i]
            by = motion.by_parameters[columns]
            late = np.exp(1j * w * skew)
            force, phase = c.force[i], c.phase[i]
            e = {name: float(error[i]) for name, error in self._errors.items()}
            spread = [motion.by_frequency * e["frequency"], motion.by_amplitude * e["amplitude"]]
            if np.isfinite(force) and np.isfinite(phase):
                told = force * np.exp(-1j * phase) * late
                unit = told / max(abs(told), 1e-300)
                own = [unit * e["force"], 1j * told * e["phase"]]
                miss, by_skew = motion.force - told, -1j * w * told
                if fresh:
                    self._weights[i] = np.asarray(
                        np.linalg.cholesky(_covariance([*spread, *own])), np.float64
                    )
                cut = self._weights[i]
                block = np.array([[miss.real], [miss.imag]])
                side = np.array([[*by.real, by_skew.real], [*by.imag, by_skew.imag]])
                residuals.append(np.linalg.solve(cut, block)[:, 0])
                slopes.append(np.linalg.solve(cut, side))
                missed, total = missed + abs(miss) ** 2, total + abs(told) ** 2
                continue
            if np.isfinite(force):  # its size alone
                direction = motion.force / max(abs(motion.force), 1e-300)
                value = abs(motion.force) - force
                error = [e["force"]]
            else:  # the phase alone: no force across its direction
                direction = 1j * np.exp(-1j * phase)
                value = (motion.force * direction.conjugate()).real
                error = [abs(motion.force) * e["phase"]]
            error += [(s * np.conj(direction)).real for s in spread]
            if fresh:
                self._weights[i] = np.array([[float(np.linalg.norm(error))]])
            size = float(self._weights[i][0, 0])
            residuals.append(np.array([value / size]))
            slopes.append(np.array([[*(by * np.conj(direction)).real, 0.0]]) / size)
            missed, total = missed + value**2, total + abs(motion.force) ** 2
        if self.skewed:
            residuals.append(np.array([skew / self._skew_error]))
            slopes.append(np.array([[*np.zeros(len(columns)), 1 / self._skew_error]]))
        return _Rows(np.concatenate(residuals), np.concatenate(slopes), missed, total, int(self.skewed))


class _DecayData:
    """One decay beside the model; the time of its first point is an unknown."""

    skewed = True  # the unknown of its own is the time at which it began

    def __init__(self, model: Model, decay: MeasuredDecay) -> None:
        self.decay = decay
        self._solver = DecayingMotions(model, decay.output or model.outputs[0])
        low, high = float(decay.amplitude.min()), float(decay.amplitude.max())
        self._grid = np.geomspace(0.98 * low, 1.02 * high, GRID)
        self._motions: list[DecayingMotion | None] = [None] * GRID
        size, pitch = decay.amplitude_error / decay.amplitude, decay.frequency_error / decay.frequency
        self.told = bool(np.isfinite(size).all() and np.isfinite(pitch[np.isfinite(decay.frequency)]).all())
        self._size = np.where(np.isfinite(size) & (size > 0), size, ASSUMED["amplitude"])
        self._pitch = np.where(np.isfinite(pitch) & (pitch > 0), pitch, 10 * ASSUMED["frequency"])
        self._p: Array = np.empty(0)
        self._weights = np.empty(0), np.empty(0)

    @property
    def units(self) -> tuple[str, str]:
        return self.decay.amplitude_unit, self.decay.force_unit

    def solve(self, p: Array) -> bool:
        found = self._family(p, self._motions)
        if found is None:
            return False
        self._motions, self._p = list(found), p.copy()
        return True

    def _family(self, p: Array, near: Sequence[DecayingMotion | None]) -> list[DecayingMotion] | None:
        start = float(np.nanmedian(self.decay.frequency))
        motions: list[DecayingMotion] = []
        for i, amplitude in enumerate(self._grid):
            motion = self._solver.decaying(p, start, float(amplitude), near[i])
            if motion is None or not motion.rate > 0:
                return None
            motions.append(motion)
            start = motion.frequency
        return motions

    def _predicted(self, motions: Sequence[DecayingMotion]) -> tuple[Array, Array, Array]:
        """Time (from the grid's largest amplitude), frequency and rate at the measured amplitudes."""
        from scipy.interpolate import CubicSpline

        log = np.log(self._grid)
        at = np.log(self.decay.amplitude)
        rate = CubicSpline(log, [m.rate for m in motions])
        slow = CubicSpline(log, [1 / m.rate for m in motions]).antiderivative()
        return slow(log[-1]) - slow(at), CubicSpline(log, [m.frequency for m in motions])(at), rate(at)

    def rows(self, columns: list[int], begun: float, fresh: bool) -> _Rows:
        motions = [m for m in self._motions if m is not None]
        time, frequency, rate = self._predicted(motions)
        d = self.decay
        seen = np.isfinite(d.frequency)
        # a time off by t is an amplitude off by rate t; the frequency moves with the amplitude's error, too
        bend = np.gradient(frequency, np.log(d.amplitude)) if len(d) > 2 else np.zeros(len(d))
        if fresh:
            self._weights = np.hypot(self._pitch * d.frequency, bend * self._size), rate / self._size
        pitch, slow = self._weights
        late = (time + begun - (d.time - d.time[0])) * slow
        off = ((frequency - d.frequency) / pitch)[seen]
        slopes = np.zeros((len(late) + len(off), len(columns) + 1))
        for j, column in enumerate(columns):
            moved = self._p.copy()
            step = STEP * max(abs(moved[column]), 1e-12)
            moved[column] += step
            other = self._family(moved, motions)
            if other is None:
                continue
            time_2, frequency_2, _ = self._predicted(other)
            slopes[: len(late), j] = (time_2 - time) / step * slow
            slopes[len(late) :, j] = ((frequency_2 - frequency) / step / pitch)[seen]
        slopes[: len(late), -1] = slow
        missed = float(
            np.sum((late * self._size) ** 2) + np.sum(((frequency - d.frequency) / d.frequency)[seen] ** 2)
        )
        return _Rows(np.concatenate([late, off]), slopes, missed, float(len(late) + len(off)))


def identify_curves(
    model: Model, data: Sequence[MeasuredCurve | MeasuredDecay], progress: Progress = SILENT
) -> Identification:
    """The model's free parameters from all curves and decays together."""
    if not data:
        raise DataError("There is no curve to identify from.")
    if len(model.inputs) != 1:
        raise ModelError(
            f"{model.name} has {len(model.inputs)} measured inputs: curves are for models whose force is "
            'one, written as f = "measured".'
        )
    names = list(model.free)
    if not names:
        raise ModelError(f"{model.name} has no parameter to be identified.")
    unlike = [words for one in data for words in check_curve_units(model, one)]
    fit = _fitted(model, names, data, progress)
    result = fit.result()
    result = replace(result, warnings=[*unlike, *result.warnings])
    turned = _told_other_way(fit, data, progress) if result.usable else ""
    return replace(result, verdict="cannot tell", reasons=[turned]) if turned else result


def _fitted(
    model: Model, names: list[str], data: Sequence[MeasuredCurve | MeasuredDecay], progress: Progress
) -> _Fit:
    sets = [_CurveData(model, d) if isinstance(d, MeasuredCurve) else _DecayData(model, d) for d in data]
    fit = _Fit(model, names, sets)
    fit.run(progress)
    return fit


def _told_other_way(fit: _Fit, data: Sequence[MeasuredCurve | MeasuredDecay], progress: Progress) -> str:
    """A sentence where phases that count a lag as positive would explain signs that nobody expected.

    With them turned round a displacement tells the same stiffness and the damping of the other sign: the fit
    is as good. Only guesses tell which of the two is meant.
    """
    against = fit.against_guess()
    if not against or all(isinstance(d, MeasuredDecay) or np.isnan(d.phase).all() for d in data):
        return ""
    turned = [replace(d, phase=-d.phase) if isinstance(d, MeasuredCurve) else d for d in data]
    try:
        other = _fitted(fit.model, fit.names, turned, progress)
    except DataError:
        return ""
    if other.against_guess() or other.chi2() > fit.chi2() + SAME_CHI2:
        return ""
    name = against[0]
    return (
        f"{name} has another sign than its guess ({fit.value(name):.4g}); with the phases counted the other "
        f"way round, a lag positive, it is {other.value(name):.4g} and the curves are met as well. If the "
        "table counts so, call its column 'phase lag'; else give a guess with the sign that is meant."
    )


class _Fit:
    """Levenberg-Marquardt over parameters and one unknown of each curve's own."""

    def __init__(self, model: Model, names: list[str], sets: Sequence[_CurveData | _DecayData]) -> None:
        self.model, self.names, self.sets = model, names, sets
        order = list(model.parameters)
        self.columns = [order.index(name) for name in names]
        self.p = model.values().astype(np.float64)
        self.own = np.zeros(len(sets))
        bounds = [model.parameters[name] for name in names]
        self.lower = np.array([b.lower for b in bounds])
        self.upper = np.array([b.upper for b in bounds])
        self.iterations = self.evaluations = 0
        self.converged = False

    def _solve(self, p: Array) -> bool:
        self.evaluations += 1
        return all(one.solve(p) for one in self.sets)

    def _all(self, fresh: bool = False) -> tuple[Array, Array, list[_Rows]]:
        found = [one.rows(self.columns, float(self.own[i]), fresh) for i, one in enumerate(self.sets)]
        count, k = sum(len(f.residual) for f in found), len(self.columns)
        jacobian, row = np.zeros((count, k + len(self.sets))), 0
        for i, f in enumerate(found):
            rows = slice(row, row + len(f.residual))
            jacobian[rows, :k], jacobian[rows, k + i] = f.jacobian[:, :k], f.jacobian[:, k]
            row += len(f.residual)
        return np.concatenate([f.residual for f in found]), jacobian, found

    def run(self, progress: Progress) -> None:
        if not self._solve(self.p):
            raise DataError(
                f"{self.model.name} with its guesses has no motion of the measured amplitude and "
                f"frequency at some point: give better guesses{self._in_units()}."
            )
        for _ in range(OUTER):  # the weights hold the model's slopes: computed anew until they stay
            before = self.p[self.columns].copy()
            _, J, _ = self._all(fresh=True)
            self._descend(progress)
            moved = (self.p[self.columns] - before) * np.sqrt(np.sum(J[:, : len(before)] ** 2, axis=0))
            if self.converged and np.abs(moved).max() < MOVED:
                break
        self._all(fresh=True)

    def _in_units(self) -> str:
        """The units of the data, where the model does not say its own: it is the likeliest mistake."""
        told = [unit for one in self.sets for unit in one.units if unit]
        return f", in the units of the data ({', '.join(dict.fromkeys(told))})" if told else ""

    def _descend(self, progress: Progress) -> None:
        """Levenberg-Marquardt with the weights as they are."""
        damping, k = 1e-3, len(self.columns)
        r, J, _ = self._all()
        self.converged = False
        for _ in range(_MOST_STEPS):
            self.iterations += 1
            progress.report(min(0.99, self.iterations / _MOST_STEPS), f"misfit {float(r @ r) / len(r):.4g}")
            size = np.sqrt(np.sum(J**2, axis=0)) + 1e-300
            scaled = J / size
            pushed = self._at_bound(J.T @ r)
            scaled[:, pushed] = 0.0
            step = -np.linalg.solve(scaled.T @ scaled + damping * np.eye(len(size)), scaled.T @ r) / size
            step[pushed] = 0.0
            before = (self.p, self.own)
            self.p, self.own = self.p.copy(), self.own + step[k:]
            self.p[self.columns] = np.clip(self.p[self.columns] + step[:k], self.lower, self.upper)
            good = self._solve(self.p)
            r_new, J_new, _ = self._all() if good else (r, J, [])
            if good and float(r_new @ r_new) <= float(r @ r) * (1 + 1e-12):
                length = float(np.linalg.norm(step * size))
                r, J, damping = r_new, J_new, max(damping / 10, 1e-12)
                if length < _SETTLED * (1 + float(np.linalg.norm(r))):
                    self.converged = True
                    return
            else:
                self.p, self.own = before
                self._solve(self.p)
                damping *= 10
                if damping > _MOST_DAMPING:  # no step helps: as low as rounding lets it be
                    self.converged = True
                    return

    def _at_bound(self, gradient: Array) -> NDArray[np.bool_]:
        """Unknowns that stand at a bound and are pushed against it."""
        here, k = self.p[self.columns], len(self.columns)
        held = np.zeros(len(gradient), dtype=bool)
        held[:k] = ((here <= self.lower) & (gradient[:k] > 0)) | ((here >= self.upper) & (gradient[:k] < 0))
        return held

    def result(self) -> Identification:
        from scipy.stats import chi2 as chi2_law
        from scipy.stats import t as student

        r, J, found = self._all()
        k = len(self.columns)
        prior = sum(f.prior for f in found)
        unknown = k + len(self.sets) - prior  # a skew with its prior is one of each
        dof = len(r) - prior - unknown
        if dof < 1:
            raise DataError(f"{len(r) - prior} numbers are too few for {unknown} unknowns.")
        covariance, undetermined = self._covariance(J)
        chi2 = float(r @ r)
        told = all(one.told for one in self.sets)
        share = float(np.sqrt(sum(f.missed for f in found) / sum(f.total for f in found)))
        p_value = float(chi2_law.sf(chi2, dof)) if told else 1.0
        correlation = _neighbours(r, found)
        fits = p_value > CHANCE and abs(correlation) < 4 / np.sqrt(len(r))
        wider = self._widened(covariance, r, J, chi2 / dof, fits, told)
        verdict, reasons = _verdict(fits, share, chi2 / dof, told, correlation)
        ideal = np.sqrt(np.maximum(np.diag(covariance), 0.0)) * (1.0 if told else np.sqrt(chi2 / dof))
        errors = np.sqrt(np.maximum(np.diag(wider), 0.0))
        quantile = float(student.ppf(0.975, dof if fits else BLOCKS - 1))
        units = {name: self.model.parameters[name].unit for name in self.names}
        signless = self._signless(chi2)
        estimates = {}
        for i, name in enumerate(self.names):
            value, error = float(self.p[self.columns[i]]), float(errors[i])
            error = float("nan") if name in undetermined else error
            lower, upper = value - quantile * error, value + quantile * error
            if name in signless:
                error = float(np.hypot(error, value))
                lower, upper = min(lower, -upper), max(upper, -lower)
            estimates[name] = Estimate(value, error, lower, upper, units[name], float(ideal[i]))
        if undetermined:
            verdict = "cannot tell" if verdict in ("fits", "close") else verdict
        warnings = (
            []
            if told
            else ["The data tell no errors: those of the parameters come from the scatter of the fit."]
        )
        values = {name: float(self.p[self.columns[i]]) for i, name in enumerate(self.names)}
        at = [
            n for i, n in enumerate(self.names) if self.p[self.columns[i]] in (self.lower[i], self.upper[i])
        ]
        warnings += [f"{name} stands at a bound." for name in at]
        warnings += [f"The sign of {name} is not told: {-values[name]:.4g} is as good." for name in signless]
        return Identification(
            METHOD, self.model.name, self.converged, estimates, self.iterations, self.evaluations,
            Residual(chi2, dof, other={"share of the force missed": share}, missed=share),
            [f"The curves do not determine {', '.join(undetermined)}."] if undetermined else [],
            warnings, verdict, reasons, wider.tolist(),
            extra={"points": int(sum(len(_points(s)) for s in self.sets))},
            model_text=self.model.with_values(values).to_toml(),
            references=["Krack, Gross, Harmonic Balance for Nonlinear Vibration Problems, Springer, 2019"],
        )  # fmt: skip

    def value(self, name: str) -> float:
        return float(self.p[list(self.model.parameters).index(name)])

    def chi2(self) -> float:
        r, _, _ = self._all()
        return float(r @ r)

    def against_guess(self) -> list[str]:
        """Free parameters whose sign is not that of their guess."""
        guesses = dict(zip(self.model.parameters, self.model.values(), strict=True))
        return [name for name in self.names if guesses[name] * self.value(name) < 0]

    def _signless(self, chi2: float) -> list[str]:
        """Parameters whose sign the curves do not tell: fundamentals of a mirrored specimen are the same."""
        found = []
        for i, name in enumerate(self.names):
            value, column = float(self.p[self.columns[i]]), self.columns[i]
            if not value or not self.lower[i] < -value < self.upper[i]:
                continue
            mirrored = self.p.copy()
            mirrored[column] = -value
            if self._solve(mirrored):
                r, _, _ = self._all()
                if float(r @ r) < chi2 + SAME_CHI2:
                    found.append(name)
        self._solve(self.p)
        return found

    def _covariance(self, J: Array) -> tuple[Array, list[str]]:
        """Of the parameters, the curves' own unknowns taken out; names that the data do not determine."""
        k = len(self.columns)
        size = np.sqrt(np.sum(J**2, axis=0))
        dead = size <= 1e-300
        size[dead] = 1.0
        scaled = J / size
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        weak = values < RANK * max(float(values[-1]), 1e-300)
        lost = sorted(
            {self.names[i] for v in vectors[:, weak].T for i in range(k) if abs(v[i]) > _TAKES_PART}
            | {self.names[i] for i in range(k) if dead[i]}
        )
        inverse = (vectors[:, ~weak] / values[~weak]) @ vectors[:, ~weak].T / np.outer(size, size)
        return inverse[:k, :k], lost

    def _widened(
        self, covariance: Array, r: Array, J: Array, reduced: float, fits: bool, told: bool
    ) -> Array:
        """The covariance as the residuals themselves call for it: their size, their sums over stretches."""
        if fits and told:
            return covariance
        scaled = covariance * max(reduced, 1.0 if told else 0.0)
        if fits:
            return scaled
        k = len(self.columns)
        full = pseudo_inverse(J.T @ J)
        scores = np.array([J[rows].T @ r[rows] for rows in np.array_split(np.arange(len(r)), BLOCKS)])
        # the spread of stretches, not divided by their number: what a model misses does not average out
        robust = (full @ (BLOCKS * scores.T @ scores) @ full)[:k, :k]
        grown = np.sqrt(np.maximum(np.diag(robust) / np.maximum(np.diag(scaled), 1e-300), 1.0))
        return np.asarray(scaled * np.outer(grown, grown))


def _verdict(
    fits: bool, share: float, reduced: float, told: bool, correlation: float
) -> tuple[str, list[str]]:
    if fits:
        sentence = (
            f"Every curve is met within its errors (chi2/dof {reduced:.2f})."
            if told
            else f"What is left, {percent(share)} of the force, shows no pattern along the curves."
        )
        return "fits", [sentence]
    words = (
        f"The model misses {percent(share)} of the force along the curves: {np.sqrt(reduced):.1f} times "
        f"the errors told, neighbours correlated by {correlation:.2f}."
    )
    if share < CLOSE_SHARE:
        return "close", [words]
    return "misses", [words]


def _neighbours(r: Array, found: Sequence[_Rows]) -> float:
    """Correlation between residuals of neighbouring points of a curve, two to a point where it has two."""
    products, squares, row = 0.0, 0.0, 0
    for f in found:
        own = r[row : row + len(f.residual) - f.prior]
        row += len(f.residual)
        if len(own) > 4:
            products += float(np.sum(own[:-2] * own[2:]))
            squares += float(np.sum(own**2))
    return products / squares if squares else 0.0


def _points(one: _CurveData | _DecayData) -> Array:
    return one.curve.frequency if isinstance(one, _CurveData) else one.decay.time


def _finite_errors(curve: MeasuredCurve) -> bool:
    names = ("frequency", "amplitude", "phase", "force")
    return all(
        bool(np.isfinite(getattr(curve, f"{n}_error")[np.isfinite(getattr(curve, n))]).all()) for n in names
    )


def _errors(curve: MeasuredCurve) -> dict[str, Array]:
    """Standard errors, assumed ones where none are told."""
    found = {}
    for name, share in ASSUMED.items():
        error, size = getattr(curve, f"{name}_error"), np.abs(getattr(curve, name))
        found[name] = np.where(np.isfinite(error), error, share * size)
        found[name] = np.maximum(found[name], 1e-9 * np.nan_to_num(size))
    found["phase"] = np.where(np.isfinite(curve.phase_error), curve.phase_error, ASSUMED_PHASE)
    found["phase"] = np.maximum(found["phase"], 1e-6)
    return found


def _covariance(parts: Sequence[complex]) -> Array:
    """Of a complex number whose independent errors are these vectors of the plane."""
    vectors: Any = np.array([[v.real, v.imag] for v in parts])
    total = vectors.T @ vectors
    return np.asarray(total + 1e-12 * np.trace(total) * np.eye(2))
