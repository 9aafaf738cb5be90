"""Score test: would a term that the model lacks explain part of what is left?

A term added to an equation acts as a small force along the fitted motion. Carried through the linearised flow
it gives one more column of sensitivities; freed of what the parameters, the initial state and noisy inputs
can imitate, its product with the residuals tells at once, without another fit, how far its coefficient is
from zero (Rao 1948). The variance is that of the residuals' own process, coloured or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.autoregression import Autoregression
from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.terms import Term
from analysis.estimate.identifiability import pseudo_inverse

Array = NDArray[np.float64]

# Chance that one of the terms that are missing most often, or one of the others, is found in a right model,
# and how many of each are counted at least. One oscillator has six and about eight: |t| > 3.1 and 3.7.
FALSE_ALARMS = {True: (0.012, 6), False: (0.0017, 8)}
_TOGETHER = 1e-3  # eigenvalue of the scaled information below which columns cannot be told apart
_MANY = 1000.0  # degrees of freedom from which on Student's t is normal as far as it matters
_SPARE = 5.0  # samples for each fitted number without which the columns may not explain the noise away
_OWN = 0.02  # share of a term's effect that must be its own; less is the rounding of its integral
_OWN_DIRECTION = 1e-6  # of the largest eigenvalue: below it a combination of columns is another one's copy


@dataclass(frozen=True)
class Missing:
    """A term tried: its coefficient with standard error, and its share of what drives that state."""

    name: str
    place: str  # dv/dt, or an output
    t: float
    coefficient: float
    stderr: float
    share: float  # rms of the term over rms of the right-hand side (of the output)
    common: bool = False  # among the terms that are missing most often
    limit: float = np.inf  # |t| beyond which it speaks against the model
    shift: tuple[float, ...] = ()  # of each unknown, if the term were fitted, too; empty: not known
    text: str = ""  # in the model language, {s} for its scale; empty: no term of an equation
    scale: float = 0.0  # of that state, where the term has one
    gain: float = 0.0  # by which the sum of squared residuals over the noise falls if it is fitted, too

    @property
    def speaks_against(self) -> bool:
        """Whether chance alone hardly makes a coefficient so far from zero."""
        return abs(self.t) > self.limit


def with_limits(tried: Sequence[Missing]) -> list[Missing]:
    """The terms tried with their limits: the more of a kind, the further from zero one of them must be."""
    from scipy.special import ndtri

    limits = {}
    for kind, (chance, least) in FALSE_ALARMS.items():
        count = max(sum(m.common == kind for m in tried), least)
        limits[kind] = float(-ndtri(chance / (2 * count)))
    return [replace(m, limit=limits[m.common]) for m in tried]


@dataclass(frozen=True, eq=False)
class Added:
    """Columns of added terms [q, N, T] in one stretch, beside its regression."""

    regression: Regression
    columns: Array


def pushes(
    flow: Array,
    times: Array,
    states: Array,
    rates: Array,
    terms: Sequence[Term],
    inputs: Callable[[Array], Array],
) -> Array:
    """What each term adds to the state over each sample interval, [N - 1, n, T].

    integral of Phi(t + h, s) e_i g(s) ds by Simpson's rule; the state half-way from the cubic through states
    and rates, the half-way flow from the square root of the whole one to third order.
    """
    n = len(states)
    h = np.diff(times)
    middle = 0.5 * (states[:, 1:] + states[:, :-1]) + h / 8.0 * (rates[:, :-1] - rates[:, 1:])
    rest = flow[:, :n, :n] - np.eye(n)
    wholes = {i: flow[:, :n, i] for i in {term.equation for term in terms}}
    halves = {
        i: np.eye(n)[i] + 0.5 * rest[:, :, i] - 0.125 * (rest @ rest[:, :, i : i + 1])[..., 0] for i in wholes
    }
    at_nodes, at_middle = inputs(times), inputs(0.5 * (times[1:] + times[:-1]))
    found = np.empty((len(h), n, len(terms)))
    for j, term in enumerate(terms):
        i = term.equation
        nodes, between = term.values(states, at_nodes), term.values(middle, at_middle)
        found[:, :, j] = wholes[i] * nodes[:-1, None] + 4.0 * halves[i] * between[:, None]
        found[:, i, j] += nodes[1:]
        found[:, :, j] *= (h / 6.0)[:, None]
    return found


def force_columns(
    linearisation: Linearisation, terms: Sequence[Term], rates: Array, inputs: Callable[[Array], Array]
) -> Array:
    """Columns [q, N, T] of terms added to the equations."""
    s = linearisation.stretch
    added = pushes(linearisation.flow, s.times, s.states, rates, terms, inputs)
    shifts = np.zeros((len(s.times), len(s.outputs), len(terms)))
    return linearisation.columns(added, shifts)


def output_columns(linearisation: Linearisation, shifts: Array) -> Array:
    """Columns [q, N, T] of what is added to the outputs, ``shifts`` [q, N, T] in their own units."""
    s = linearisation.stretch
    still = np.zeros((len(s.times) - 1, len(s.states), shifts.shape[2]))
    return linearisation.columns(still, shifts.transpose(1, 0, 2) / s.sigma[None, :, None])


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of added columns freed of the unknowns, their information and their covariance."""

    score: Array  # [T]
    information: Array  # [T, T]
    covariance: Array  # [T, T]
    own: NDArray[np.bool_]  # [T] columns that the unknowns cannot imitate
    along: Array  # [P, T] the unknowns that imitate each column best
    freedom: float  # samples from which the noise was found, less what was fitted to them

    def t_values(self) -> Array:
        """Distance of each coefficient from zero: the normal deviate that is as rare as Student's t."""
        from scipy.special import ndtri, stdtr

        size = np.sqrt(np.maximum(np.diag(self.covariance), 1e-300))
        found = np.where(self.own, self.score / size, 0.0)
        if self.freedom >= _MANY:
            return found
        return np.asarray(-np.sign(found) * ndtri(stdtr(max(self.freedom, 1.0), -np.abs(found))))

    def coefficients(self) -> tuple[Array, Array]:
        """Coefficient of each term if it were added alone, and its standard error."""
        own = np.where(self.own, np.diag(self.information), np.inf)
        return self.score / own, np.sqrt(np.maximum(np.diag(self.covariance), 0.0)) / own

    def gains(self) -> Array:
        """By how much the sum of squared residuals falls if a term is added alone."""
        return np.asarray(self.score * self.coefficients()[0])

    def joint(self) -> tuple[float, int]:
        """Statistic and freedom of all columns together."""
        chosen = np.flatnonzero(self.own)
        if not len(chosen):
            return 0.0, 0
        part = self.covariance[np.ix_(chosen, chosen)]
        size = np.sqrt(np.diag(part))
        values, vectors = np.linalg.eigh(part / np.outer(size, size))
        kept = values > _OWN_DIRECTION * values.max()
        along = vectors.T @ (self.score[chosen] / size)
        return float(np.sum(along[kept] ** 2 / values[kept])), int(kept.sum())


def scores(
    added: Sequence[Added], used: float, noise: Callable[[Sequence[Regression], float], list[Autoregression]]
) -> Scores:
    """Scores of columns added to a fit of ``used`` unknowns.

    ``noise`` finds the residuals' processes: those that would be left if the columns were there, too, so that
    what is missing does not pass for noise.
    """
    T = added[0].columns.shape[2]
    P = added[0].regression.jacobian.shape[2]
    cross, total, sizes = np.zeros((P, T)), np.zeros((P, P)), np.zeros(T)
    for a in added:
        J, U = a.regression.jacobian.reshape(-1, P), a.columns.reshape(-1, T)
        cross += J.T @ U
        total += J.T @ J
        sizes += np.sum(U**2, axis=0)
    along = pseudo_inverse(total) @ cross
    free = [a.columns - a.regression.jacobian @ along for a in added]
    score, information, covariance = np.zeros(T), np.zeros((T, T)), np.zeros((T, T))
    for a, rows in zip(added, free, strict=True):
        score += np.einsum("qt,qtj->j", np.nan_to_num(a.regression.errors), rows)
        flat = rows.reshape(-1, T)
        information += flat.T @ flat
    own = (np.diag(information) > _OWN**2 * sizes) & (sizes > 0)
    step, directions, _ = _best(score, information, own)
    samples = sum(a.regression.samples for a in added)
    if samples < _SPARE * (used + directions):
        step, directions = np.zeros(T), 0
    left = [
        Regression(a.regression.errors - rows @ step, a.regression.jacobian)
        for a, rows in zip(added, free, strict=True)
    ]
    processes = noise(left, used + directions)
    powers = [_power([r.errors[i] for r in left]) for i in range(len(processes))]
    white = np.zeros(T)
    for rows in free:
        for process, row, power in zip(processes, rows, powers, strict=True):
            covariance += process.sum_covariance(row)
            white += power * np.sum(row**2, axis=0)
    # A process fitted by chance to white noise has gaps in its spectrum, into which no term may fall.
    raised = np.sqrt(np.maximum(white / np.maximum(np.diag(covariance), 1e-300), 1.0))
    covariance *= np.outer(raised, raised)
    return Scores(score, information, covariance, own, along, samples - used - directions)


def _best(score: Array, information: Array, own: NDArray[np.bool_]) -> tuple[Array, int, Array]:
    """Coefficients of all own columns together over the directions that are well determined, the number of
    these, and the inverse of the information over them.
    """
    inverse = np.zeros_like(information)
    chosen = np.flatnonzero(own)
    if not len(chosen):
        return np.zeros(len(score)), 0, inverse
    size = np.sqrt(np.diag(information)[chosen])
    values, vectors = np.linalg.eigh(information[np.ix_(chosen, chosen)] / np.outer(size, size))
    kept = values > _TOGETHER * values.max()
    scaled = vectors[:, kept] / size[:, None]
    inverse[np.ix_(chosen, chosen)] = (scaled / values[kept]) @ scaled.T
    return inverse @ score, int(kept.sum()), inverse


def combined(found: Scores) -> tuple[Array, Array]:
    """Coefficients of all columns together, and their covariance."""
    step, _, inverse = _best(found.score, found.information, found.own)
    return step, np.asarray(inverse @ found.covariance @ inverse)


def _power(rows: Sequence[Array]) -> float:
    joined_rows = np.concatenate(rows)
    known = joined_rows[np.isfinite(joined_rows)]
    return float(np.mean(known**2)) if len(known) else 0.0
