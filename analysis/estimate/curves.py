"""Parameters from measured curves: response curves, backbones, decays of amplitude, by continuation.

At each point the model is asked for the complex force that a motion of the measured frequency and amplitude
needs (analysis.dynamics.imposed): one answer on stable and unstable branches and at folds alike. What it
misses of the measured force is weighed by the errors of force and phase, and by those of frequency and
amplitude through the model's own slopes. A decay is compared by its frequencies, and by the times at which
the model passes the measured amplitudes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Identification, Residual
from analysis.base.progress import SILENT, Progress
from analysis.base.words import percent
from analysis.estimate.curve_data import CurveData, DecayData, Rows
from analysis.estimate.descent import bounded_step, minimise
from analysis.estimate.finish.assemble import write_start
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.start import OwnEstimate, Start
from analysis.experiment.curves import MeasuredCurve, MeasuredDecay
from analysis.experiment.units import check_curve_units
from analysis.model import Model

Array = NDArray[np.float64]

METHOD = "curves"
BLOCKS = 8
RANK = 1e-9  # eigenvalue of the scaled Gram matrix below which a combination is not determined
CHANCE = 1e-3
CLOSE_SHARE = 0.03  # of the force that a model called `close` may miss
SAME_CHI2 = 4.0  # by which a change of sign must raise the sum of squares to be told
OUTER = 6  # times the weights are computed anew
MOVED = 0.02  # standard errors by which the parameters may still move with them
_MOST_STEPS = 60  # of a descent
_FIRST_DAMPING = 1e-3  # the branch is followed from the guess on: its linearisation is trusted early
_SETTLED = 1e-12  # decrease of the sum of squares, of itself, at which it ends ...
_RESOLVED = 0.5e-18  # ... or so little: a step of a billionth of a standard error
_TAKES_PART = 0.05  # of a direction that the data leave free, from which on an unknown is named


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters and each set's own unknown, with whitened residuals and their derivatives there."""

    p: Array  # of the whole model
    own: Array
    residual: Array = field(default_factory=lambda: np.zeros(0))  # none: the model has no such motion
    jacobian: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def cost(self) -> float:
        return 0.5 * float(self.residual @ self.residual) if len(self.residual) else np.inf


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
    sets = [CurveData(model, d) if isinstance(d, MeasuredCurve) else DecayData(model, d) for d in data]
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
    """The least-squares problem of the parameters and one unknown of each curve's own."""

    def __init__(self, model: Model, names: list[str], sets: Sequence[CurveData | DecayData]) -> None:
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

    def _all(self, fresh: bool = False) -> tuple[Array, Array, list[Rows]]:
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
            r, J, _ = self._all(fresh=True)
            found = minimise(
                self,
                _Point(self.p, self.own, r, J),
                _SETTLED,
                _MOST_STEPS,
                first_damping=_FIRST_DAMPING,
                unresolved=_RESOLVED,
                watch=lambda: progress.report(min(0.99, self.evaluations / _MOST_STEPS), "curves"),
            )
            self.p, self.own, self.converged = found.evaluation.p, found.evaluation.own, found.converged
            self.iterations += found.iterations
            self._solve(self.p)  # a trial that was refused may have been the last
            moved = (self.p[self.columns] - before) * np.sqrt(np.sum(J[:, : len(before)] ** 2, axis=0))
            if self.converged and np.abs(moved).max() < MOVED:
                break
        self._all(fresh=True)

    def proposed(self, here: _Point, damping: float) -> tuple[Array, float]:
        gradient, information = -here.jacobian.T @ here.residual, here.jacobian.T @ here.jacobian
        free = np.full(len(here.own), np.inf)
        step = bounded_step(
            information,
            gradient,
            np.concatenate([here.p[self.columns], here.own]),
            np.concatenate([self.lower, -free]),
            np.concatenate([self.upper, free]),
            damping,
        )
        return step, float(gradient @ step - 0.5 * step @ information @ step)

    def after(self, here: _Point, step: Array) -> _Point:
        k = len(self.columns)
        self.p, self.own = here.p.copy(), here.own + step[k:]
        self.p[self.columns] = np.clip(self.p[self.columns] + step[:k], self.lower, self.upper)
        if not self._solve(self.p):
            return _Point(self.p, self.own)
        r, J, _ = self._all()
        return _Point(self.p, self.own, r, J)

    def _in_units(self) -> str:
        """The units of the data, where the model does not say its own: it is the likeliest mistake."""
        told = [unit for one in self.sets for unit in one.units if unit]
        return f", in the units of the data ({', '.join(dict.fromkeys(told))})" if told else ""

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
        lost = [i for i, name in enumerate(self.names) if name in undetermined]
        ideal = covariance * (1.0 if told else chi2 / dof)
        for one in (wider, ideal):
            one[lost, lost] = np.inf
        if undetermined:
            verdict = "cannot tell" if verdict in ("fits", "close") else verdict
        values = {name: float(self.p[column]) for name, column in zip(self.names, self.columns, strict=True)}
        own = OwnEstimate(
            self.names,
            np.array(list(values.values())),
            covariance=wider,
            residual=Residual(chi2, dof, other={"share of the force missed": share}, missed=share),
            units={name: self.model.parameters[name].unit for name in self.names},
            quantile=np.full(k, float(student.ppf(0.975, dof if fits else BLOCKS - 1))),
            ideal=ideal,
        )
        start = Start(
            METHOD,
            self.p,
            converged=self.converged,
            iterations=self.iterations,
            evaluations=self.evaluations,
            warnings=self._warnings(told),
            undetermined=[f"The curves do not determine {', '.join(undetermined)}."] if undetermined else [],
            own=own,
            verdict=verdict,
            reasons=reasons,
            findings={"points": sum(one.points for one in self.sets)},
            references=["Krack, Gross, Harmonic Balance for Nonlinear Vibration Problems, Springer, 2019"],
        )
        result = write_start(start, self.model.name, self.model.with_values(values).to_toml(), {})
        return _of_either_sign(result, self._signless(chi2))

    def _warnings(self, told: bool) -> list[str]:
        words = "The data tell no errors: those of the parameters come from the scatter of the fit."
        values = self.p[self.columns]
        at_bound = (values == self.lower) | (values == self.upper)
        found = [] if told else [words]
        return found + [f"{name} stands at a bound." for name in np.array(self.names)[at_bound]]

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


def _of_either_sign(result: Identification, signless: list[str]) -> Identification:
    """The result with errors that reach the mirrored values of the parameters whose sign is not told."""
    parameters, words = dict(result.parameters), []
    for name in signless:
        e = parameters[name]
        parameters[name] = replace(
            e,
            stderr=float(np.hypot(e.stderr, e.value)),
            lower=min(e.lower, -e.upper),
            upper=max(e.upper, -e.lower),
        )
        words.append(f"The sign of {name} is not told: {-e.value:.4g} is as good.")
    return replace(result, parameters=parameters, warnings=[*result.warnings, *words])


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


def _neighbours(r: Array, found: Sequence[Rows]) -> float:
    """Correlation between residuals of neighbouring points of a curve, two to a point where it has two."""
    products, squares, row = 0.0, 0.0, 0
    for f in found:
        own = r[row : row + len(f.residual) - f.prior]
        row += len(f.residual)
        if len(own) > 4:
            products += float(np.sum(own[:-2] * own[2:]))
            squares += float(np.sum(own**2))
    return products / squares if squares else 0.0
