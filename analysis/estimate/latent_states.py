"""The states of a fitted model along its record, hidden ones included, with their standard errors.

Around the fitted path the motion is linear: dx[k+1] = F dx[k] + G dp with the derivatives of the flow over
a sample, and a sample shows H dx + D dp + noise. Given the parameters p, a filter runs forward (covariance P,
mean m per unit of p) and another one backward (information L and its vector y); together

    P_s = (P^-1 + L)^-1,      m_s = m + P_s (y - L m),

(Fraser and Potter 1969), and with C the covariance of the parameters the states have the covariance

    P_s + m_s C m_s'.

Unlike a simulation from the first state with its error bar this holds for chaotic motions, too.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted, Piece
from analysis.estimate.profiling import why_not_again
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.model import Model
from analysis.simulation.flow import advance_with_derivatives

Array = NDArray[np.float64]

_SAME = 0.5  # standard errors by which a fit made again may differ and still be the same
_OF_THE_PATH = "defect"  # what only a fit on the path tells of itself
_DIFFUSE = 30.0  # spread of a first state before any sample, in ranges of that state
_ROUNDING = (
    1e-6  # of a state's range: uncertainty that a sample interval adds, so that nothing is known exactly
)
_LEAST_STEPS = 4  # of Runge-Kutta within a sample


@dataclass(frozen=True, eq=False)
class LatentStates:
    """States along a record; not-a-number where the record has a gap that the fit does not cross."""

    names: tuple[str, ...]
    values: Array  # [n, N]
    stderr: Array  # [n, N]
    words: tuple[str, ...] = ()  # what the standard errors do not count


def latent_states(result: Identification, record: Record, progress: Progress = SILENT) -> LatentStates:
    """The states of a fit along the record that it was made from.

    The fit is made again from its own numbers. Where it comes to others, the states would belong to them, and
    are refused.
    """
    if refused := why_no_states(result):
        raise DataError(refused)
    fitted = _again(result, record, progress)
    n, N = len(fitted.experiment.model.states), len(record)
    first = (fitted.experiment.conditions.part or (0,))[0]
    values, stderr = np.full((n, N), np.nan), np.full((n, N), np.nan)
    covariance = _covariance(fitted, result)
    for number, piece in enumerate(fitted.pieces):
        progress.report(0.5 + 0.5 * number / len(fitted.pieces), "states")
        samples = slice(first + piece.first, first + piece.stop)
        values[:, samples] = piece.states
        stderr[:, samples] = _errors(fitted, piece, covariance)
    words = ["The noise of the inputs is not counted in the errors of the states."]
    said = tuple(words) if fitted.inputs_estimated else ()
    return LatentStates(tuple(fitted.experiment.model.states), values, stderr, said)


def why_no_states(result: Identification) -> str:
    """Why no states can be told of this result; empty where they can."""
    return why_not_again(result, "states")


def _again(result: Identification, record: Record, progress: Progress) -> Fitted:
    """The fit made again from its own numbers, by its own engine or by the other one."""
    experiment, rows = _experiment(result, record)
    engines: list[Literal["path", "shooting"]] = ["path", "shooting"]
    if _OF_THE_PATH not in result.extra:
        engines.reverse()
    refused: ShakedownError | None = None
    for engine in engines:
        start = Start(result.method, rows, experiment.start_states(rows), engine=engine)
        try:
            fitted = fit(experiment, start, progress.part(0.0, 0.5))
        except ShakedownError as error:
            refused = refused or error
            continue
        other = _moved(result, fitted)
        if not other:
            return fitted
        refused = refused or DataError(
            f"Made again from its own numbers the fit came to {other}: is this the recording that it was "
            "made from?"
        )
    assert refused is not None
    raise refused


def _experiment(result: Identification, record: Record) -> tuple[Experiment, Array]:
    """The experiment of a result, and its parameters [1, k]."""
    model, found = Model.from_toml(result.model_text), result.values()
    known = {f.name for f in fields(Conditions)}
    said = {name: value for name, value in result.options.items() if name in known}
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in said.items()
    }
    own = {name: value for name, value in found.items() if name in model.parameters}
    experiment = Experiment(model.with_values(own), record, Conditions(**options))
    rows = experiment.guesses()
    for i, name in enumerate(experiment.model.parameters):
        rows[:, i] = found.get(name, rows[0, i])
    return experiment, rows


def _moved(result: Identification, fitted: Fitted) -> str:
    """A number that is not that of the result, in words; empty where all are."""
    functions = fitted.experiment.model.equations.functions
    smoothed = {c for name, spline in functions.items() for c in spline.coefficients(name)}
    for name, value in zip(fitted.names, fitted.estimate, strict=True):
        old = result.parameters.get(name)
        if old is not None and name not in smoothed and abs(value - old.value) > _SAME * old.stderr:
            return f"{name} = {value:.5g} instead of {old.value:.5g}"
    return ""


def _covariance(fitted: Fitted, result: Identification) -> Array:
    """Of the fit's unknowns, with the errors that the result states."""
    order = list(result.parameters)
    places = [order.index(name) for name in fitted.names if name in order]
    whole = np.array(result.covariance, dtype=np.float64)
    if whole.shape != (len(order), len(order)) or len(places) != len(fitted.names):
        raise DataError("The result does not hold the covariance of its parameters.")
    covariance = whole[np.ix_(places, places)]
    if not np.isfinite(covariance).all():
        raise DataError("The data leave some parameters undetermined, and so the states.")
    return np.asarray(covariance)


def _errors(fitted: Fitted, piece: Piece, covariance: Array) -> Array:
    """Standard errors [n, N] of the states of a piece."""
    F, G, H, D = _linearised(fitted, piece)
    seen = np.isfinite(piece.residuals)
    weights = np.where(
        seen, 1.0 / np.maximum(fitted.sigma[piece.record], 1e-300)[:, None] ** 2, 0.0
    )  # [q, N]
    size = np.maximum(np.ptp(piece.states, axis=1), 1e-300)
    Q = np.diag((_ROUNDING * size) ** 2)
    forward = _forward(F, G, H, D, weights, np.diag((_DIFFUSE * size) ** 2), Q)
    return _joined(F, G, H, D, weights, forward, Q, covariance)


def _linearised(fitted: Fitted, piece: Piece) -> tuple[Array, Array, Array, Array]:
    """F [N, n, n] and G [N, n, P] from each sample to the next, H [N, q, n] and D [N, q, P] at each."""
    model, run = fitted.experiment.model, piece.run
    kernels, n, N = model.kernels(), len(model.states), piece.stop - piece.first
    k, q = len(model.parameters), len(model.outputs)
    places = [(u.index, column) for column, u in enumerate(fitted.unknowns) if u.index < k]
    wrt = np.array([index for index, _ in places], dtype=np.int64)
    columns = [column for _, column in places]
    F, G = np.zeros((N, n, n)), np.zeros((N, n, len(fitted.unknowns)))
    H, D = np.zeros((N, q, n)), np.zeros((N, q, len(fitted.unknowns)))
    p = np.ascontiguousarray(fitted.values[piece.record, :k])
    steps = max(fitted.steps, _LEAST_STEPS)
    inputs, V = run.inputs, np.empty((n, n + len(wrt)))
    out, by_state, by_parameter = np.empty(q), np.empty((q, n)), np.empty((q, k))
    at = inputs.values(piece.times)
    for i, t in enumerate(piece.times):
        z = np.ascontiguousarray(piece.states[:, i])
        kernels.out_jac(t, z, np.ascontiguousarray(at[:, i]), p, out, by_state, by_parameter)
        H[i], D[i][:, columns] = by_state, by_parameter[:, wrt]
        advance_with_derivatives(
            kernels.jac, t, run.dt, steps, z, p, wrt, V, inputs.t0, inputs.dt, inputs.coefficients
        )
        F[i], G[i][:, columns] = V[:, :n], V[:, n:]
    for column, unknown in enumerate(fitted.unknowns):
        if k <= unknown.index < k + q:  # the offset of an output
            D[:, unknown.index - k, column] = 1.0
    return F, G, H, D


def _forward(
    F: Array, G: Array, H: Array, D: Array, weights: Array, prior: Array, Q: Array
) -> list[tuple[Array, Array]]:
    """Covariance and mean per unit of the parameters at each sample, from it and those before."""
    P, m = prior, np.zeros_like(G[0])
    found = []
    for k in range(len(F)):
        if k:
            P, m = F[k - 1] @ P @ F[k - 1].T + Q, F[k - 1] @ m + G[k - 1]
        for i in np.flatnonzero(weights[:, k]):
            h = H[k, i]
            Ph = P @ h
            gain = Ph / (h @ Ph + 1.0 / weights[i, k])
            m = m - np.outer(gain, D[k, i] + h @ m)
            P = P - np.outer(gain, Ph)
        P = 0.5 * (P + P.T)
        found.append((P, m))
    return found


def _joined(
    F: Array,
    G: Array,
    H: Array,
    D: Array,
    weights: Array,
    forward: list[tuple[Array, Array]],
    Q: Array,
    C: Array,
) -> Array:
    """Standard errors [n, N] with the samples after each one counted, too."""
    N, n = F.shape[:2]
    L, y, one = np.zeros((n, n)), np.zeros_like(G[0]), np.eye(n)
    errors = np.empty((n, N))
    for k in range(N - 1, -1, -1):
        P, m = forward[k]
        smooth = P @ np.linalg.inv(one + L @ P)
        mean = m + smooth @ (y - L @ m)
        errors[:, k] = np.sqrt(np.maximum(np.diag(smooth) + np.einsum("ip,pr,ir->i", mean, C, mean), 0.0))
        scaled = H[k].T * weights[:, k]
        L, y = L + scaled @ H[k], y - scaled @ D[k]
        if k:
            back = F[k - 1].T @ np.linalg.inv(one + L @ Q)
            L, y = back @ L @ F[k - 1], back @ (y - L @ G[k - 1])
            L = 0.5 * (L + L.T)
    return errors
