"""A periodic drive that was measured with noise: what is unknown of its harmonics is fitted along.

Read off the noisy channel, amplitude and phase of each harmonic are known to a standard error each, and the
motion often knows them better than the channel does: an error of a thousandth of the drive stands out of
two thousand samples of a motion measured to one per cent. So they are unknowns of the fit that the channel
has measured once: beside the sum of squares of the outputs stands the square of each in standard errors.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.fit import optimum_near
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.linearised import Linearisation, Regression, linearisations, regressions_of
from analysis.estimate.identifiability import pseudo_inverse

Array = NDArray[np.float64]

_ROUNDS = 6  # of moving the drive and fitting
_SETTLED = 0.1  # standard errors of the drive's unknowns by which the last round moves them
_HIDDEN = 0.1  # of the outputs' chi-square that a standard error of the drive changes: the motion is blind


def with_drive_fitted(fitted: Fitted, progress: Progress = SILENT) -> Fitted:
    """The fit with the harmonics of measured periodic drives as unknowns, too, their errors counted."""
    if fitted.inputs_estimated or not any(run.variants for run in fitted.experiment.runs):
        return fitted
    for _ in range(_ROUNDS):
        linear = linearisations(fitted)
        regressions, followed = regressions_of(fitted, linear)
        if not followed:
            return fitted
        places = _places(fitted)
        columns = [_columns(fitted, places, part) for part in linear]
        if max(_sizes(columns)) < _HIDDEN:
            return fitted
        step, covariance = _best(fitted, places, columns, regressions)
        fitted = replace(fitted, input_covariance=covariance)
        if np.abs(step).max() < _SETTLED:
            return fitted
        amounts = [step[[i for i, (r, _) in enumerate(places) if r == n]] for n in range(_records(fitted))]
        moved = _fitted(fitted, amounts, progress)
        if moved is None:
            return fitted
        fitted = replace(moved, input_covariance=covariance)  # the last round's, if none follows
    return fitted


def drive_probability(fitted: Fitted) -> float:
    """Probability that a drive is so far from what its channel shows by the channel's noise alone."""
    from scipy.special import gammaincc

    amounts = np.concatenate([np.zeros(0), *(run.fitted_variants for run in fitted.experiment.runs)])
    return float(gammaincc(len(amounts) / 2, float(amounts @ amounts) / 2)) if amounts.any() else 1.0


def _records(fitted: Fitted) -> int:
    return len(fitted.experiment.runs)


def _places(fitted: Fitted) -> list[tuple[int, int]]:
    """Run and number of every variant."""
    return [(n, j) for n, run in enumerate(fitted.experiment.runs) for j in range(len(run.variants))]


def _columns(fitted: Fitted, places: list[tuple[int, int]], part: Linearisation) -> Array:
    """Sensitivities [q, N, variants] of the innovations to one standard error of each variant."""
    pushes = np.zeros((part.N - 1, part.n, len(places)))
    shifts = np.zeros((part.N, part.q, len(places)))
    for i, (number, j) in enumerate(places):
        if number == part.stretch.record:
            run = fitted.experiment.runs[number]
            added = run.variants[j].coefficients - run.inputs.coefficients
            pushes[..., i : i + 1], shifts[..., i : i + 1] = part.added_input(added)
    return part.columns(pushes, shifts)


def _sizes(columns: list[Array]) -> Array:
    return np.asarray(sum(np.sum(c**2, axis=(0, 1)) for c in columns))


def _best(
    fitted: Fitted, places: list[tuple[int, int]], columns: list[Array], regressions: list[Regression]
) -> tuple[Array, Array]:
    """Step of the drive's unknowns to the optimum of all, and what they add to the others' covariance."""
    P, size = len(fitted.estimate), len(places)
    normal, score = np.zeros((P + size, P + size)), np.zeros(P + size)
    for c, r in zip(columns, regressions, strict=True):
        rows = np.concatenate([r.jacobian, c], axis=2).reshape(-1, P + size)
        normal += rows.T @ rows
        score += rows.T @ np.nan_to_num(r.errors).ravel()
    alone = pseudo_inverse(normal[:P, :P])
    normal[P:, P:] += np.eye(size)
    score[P:] -= np.concatenate([run.fitted_variants for run in fitted.experiment.runs])
    follow = alone @ normal[:P, P:]
    inner = np.linalg.inv(normal[P:, P:] - normal[P:, :P] @ follow)
    step = inner @ (score[P:] - follow.T @ score[:P])
    return step, follow @ inner @ follow.T


def _fitted(fitted: Fitted, amounts: list[Array], progress: Progress) -> Fitted | None:
    found = optimum_near(fitted.experiment.with_inputs_moved(amounts), fitted, progress)
    return None if found is None else replace(found, start=fitted.start)
