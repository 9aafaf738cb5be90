"""A fit seen as linear regression: residuals and sensitivities of each stretch, freed of its own unknowns.

At the fitted point the residuals obey e = J (theta - theta_fit) + noise. The initial state of a stretch, the
whole path and, where they are unknown, the samples of its inputs are unknowns, too; the forward sweep of the
path removes them: what it leaves of each sample is the part that the samples before it could not predict, of
unit variance and independent when the noise is white and of the size assumed (innovations; Kailath 1968).
Whatever else might stand in the equations or in the sensors is carried along as a further column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.jumping import meet_jumps, switching_in
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path import solver
from analysis.signal.inputs import CUBIC, Inputs

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted, Piece
    from analysis.experiment.hum import Hum

_SMALL = 1e-3  # of the inputs' spread: a change of theirs that acts linearly
_KNOWN = 1e-8  # of that spread: a first state that is known
_DIFFUSE = 30.0  # spread of a first state before any sample, in ranges of that state: no prior to speak of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Regression:
    """One stretch: errors [q, N] over the noise (nan: missing) and their sensitivities [q, N, P] (0 there).

    sum(J'J) over the stretches is the information of white noise, sum(J'e) the score. Unknowns that do not
    hold in this stretch have columns of zeros.
    """

    errors: Array
    jacobian: Array
    record: int = 0

    @property
    def score(self) -> Array:
        return np.asarray(np.einsum("qt,qtp->p", np.nan_to_num(self.errors), self.jacobian))

    @property
    def information(self) -> Array:
        flat = self.jacobian.reshape(-1, self.jacobian.shape[2])
        return np.asarray(flat.T @ flat)

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.jacobian).all() and not np.isinf(self.errors).any())

    @property
    def samples(self) -> int:
        return int(np.isfinite(self.errors).sum())

    def split(self, parts: int) -> list[Regression]:
        """The same in consecutive parts of about equal length."""
        edges = np.linspace(0, self.errors.shape[1], parts + 1).astype(int)
        return [
            Regression(self.errors[:, a:b], self.jacobian[:, a:b], self.record)
            for a, b in pairwise(edges)
            if b > a
        ]


@dataclass(frozen=True, eq=False)
class Stretch:
    """What is needed to linearise one unbroken stretch at the fitted point."""

    times: Array  # [N]
    states: Array  # [n, N]
    outputs: Array  # [q, N], nan: missing
    values: Array  # [k + 3q] the model's parameters, then offsets, delays and drifts of the outputs
    free: NDArray[np.int64]  # indices into ``values`` of the unknowns that hold here, ascending
    columns: NDArray[np.int64]  # their positions among all unknowns
    sigma: Array  # [q]
    inputs: Inputs | None
    input_noise: Array  # [m], 0 where an input is taken as exact
    spread: Array  # [n] standard deviation of the first state before any sample
    origin: float  # time from which drifts count
    record: int = 0


class Linearisation:
    """Flow, outputs and their derivatives along a stretch; gives the regression of any columns.

    ``obeys``: the path is a motion of the equations but for rounding; otherwise its defects count.
    """

    def __init__(
        self, kernels: Any, stretch: Stretch, unknowns: int, steps: int = 1, obeys: bool = True
    ) -> None:
        self.stretch, self.unknowns = stretch, unknowns
        self._kernels, self._steps = kernels, steps
        s = stretch
        self.n, self.N = s.states.shape
        self.q, self.k = len(s.outputs), len(s.values) - 3 * len(s.outputs)
        a = int(np.sum(s.free < self.k))
        self.flow = np.empty((self.N - 1, self.n, self.n + a))
        self.seen = np.empty((self.N, self.q, self.n))
        self.direct = np.empty((self.N, self.q, len(s.free)))
        self.residuals = np.empty((self.N, self.q))
        self.defects = np.zeros((self.N - 1, self.n))  # the fitted path obeys the equations ...
        defects = np.empty((self.N - 1, self.n))
        solver.linearise(
            kernels.jac, kernels.out_jac, s.times, s.states, s.outputs, s.sigma, s.values, s.free, steps,
            *_interpolants(s), self.flow, defects, self.residuals, self.seen, self.direct,
        )  # fmt: skip
        if not obeys:
            self.defects = defects
        self._gains: tuple[Array, Array] | None = None
        self._append_noisy_inputs()

    def _append_noisy_inputs(self) -> None:
        """Errors of noisy inputs behind the states: what each does to the flow and to the outputs."""
        s, n = self.stretch, self.n
        noisy = np.flatnonzero(s.input_noise > 0)
        if not len(noisy) or s.inputs is None:
            return
        a, m = self.flow.shape[2] - n, len(noisy)
        flow, seen = np.zeros((self.N - 1, n + m, n + m + a)), np.zeros((self.N, self.q, n + m))
        flow[:, :n, :n], flow[:, :n, n + m :], seen[:, :, :n] = (
            self.flow[..., :n],
            self.flow[..., n:],
            self.seen,
        )
        given = _interpolants(s)[2]
        base = self._evaluated(given)
        for j, channel in enumerate(noisy):
            size = float(s.input_noise[channel])
            moved = given.copy()
            moved[channel, :, 0] += size
            defects, residuals = self._evaluated(moved)
            flow[:, :n, n + j] = (defects - base[0]) / size
            seen[:, :, n + j] = np.nan_to_num(base[1] - residuals) / size
        self.flow, self.seen = flow, seen
        self.defects = np.hstack([base[0], np.zeros((self.N - 1, m))])  # ... with inputs other than measured

    def _evaluated(self, coefficients: Array) -> tuple[Array, Array]:
        s = self.stretch
        t0, dt, _ = _interpolants(s)
        rhs, out = self._kernels.rhs, self._kernels.out
        defects, residuals = np.empty((self.N - 1, self.n)), np.empty((self.N, self.q))
        solver.evaluate(
            rhs, out, s.times, s.states, s.outputs, s.sigma, s.values, self._steps, t0, dt,
            coefficients, defects, residuals,
        )  # fmt: skip
        return defects, residuals

    def regression(self) -> Regression:
        """The residuals and the sensitivities of the unknowns."""
        errors, own, gains, variances = self._swept()
        self._gains = gains, variances
        jacobian = np.zeros((self.q, self.N, self.unknowns))
        jacobian[:, :, self.stretch.columns] = own
        return Regression(errors, jacobian, self.stretch.record)

    def columns(self, pushes: Array, shifts: Array) -> Array:
        """Sensitivities [q, N, T] to further terms, freed of the stretch's own unknowns.

        ``pushes`` [N - 1, n, T]: what a term adds to the state over each sample interval; ``shifts``
        [N, q, T]: what it adds to the outputs, in units of the noise.
        """
        if self._gains is None:
            *_, gains, variances = self._swept()
            self._gains = gains, variances
        gains, variances = self._gains
        innovations = np.empty(shifts.shape)
        pushes, shifts = np.ascontiguousarray(pushes), np.ascontiguousarray(shifts)
        solver.forward_columns(self.flow, pushes, self.seen, shifts, gains, variances, innovations)
        return _over_spread(innovations, variances)

    def shifted_input(self, channel: int) -> tuple[Array, Array]:
        """What an input does that comes earlier by a unit of time: pushes [N - 1, n, 1], shifts [N, q, 1].

        From one sample early and one late, so that held inputs count as what they are.
        """
        _, dt, given = _interpolants(self.stretch)
        defects, residuals = [], []
        for step in (1, -1):
            moved = given.copy()
            places = np.clip(np.arange(given.shape[1]) + step, 0, given.shape[1] - 1)
            moved[channel] = given[channel, places]
            found = self._evaluated(moved)
            defects.append(found[0])
            residuals.append(found[1])
        pushes = (defects[0] - defects[1]) / (2.0 * dt)
        return pushes[..., None], np.nan_to_num(residuals[1] - residuals[0])[..., None] / (2.0 * dt)

    def changed_inputs(self, change: Callable[[Array, float], Array], factor: float) -> tuple[Array, Array]:
        """What the inputs do when factor*change(samples, dt) is added to them: pushes [N - 1, n, 1], shifts
        [N, q, 1].
        """
        given = self.stretch.inputs
        if given is None or not given.count:
            return np.zeros((self.N - 1, self.n, 1)), np.zeros((self.N, self.q, 1))
        rows = np.stack([change(row, given.dt) for row in given.coefficients[:, :, 0]])
        kind = "cubic" if given.coefficients.shape[2] == CUBIC else "bandlimited"
        added = Inputs.from_samples(given.t0, given.dt, factor * rows, kind).coefficients
        step = _SMALL * float(np.std(given.coefficients[:, :, 0])) / (float(np.std(rows)) or 1.0)
        return self.added_input(added, step)

    def added_input(self, added: Array, step: float = 1.0) -> tuple[Array, Array]:
        """What the inputs do when ``added`` (coefficients like theirs) comes to them: pushes [N - 1, n, 1],
        shifts [N, q, 1]; from ``step`` times as much on either side.
        """
        given = _interpolants(self.stretch)[2]
        (ahead, more), (behind, less) = (self._evaluated(given + sign * step * added) for sign in (1.0, -1.0))
        pushes = (ahead - behind) / (2.0 * step)
        return pushes[..., None], np.nan_to_num(less - more)[..., None] / (2.0 * step)

    def _swept(self) -> tuple[Array, Array, Array, Array]:
        """Innovations [q, N] over their spread, sensitivities [q, N, p] of the unknowns, gains of the sweep
        [N, q, n] and variances of the innovations [N, q] (0: missing)."""
        N, q, size = self.seen.shape
        p = self.direct.shape[2]
        noise = self.stretch.input_noise
        noise = noise[noise > 0][: size - self.n]
        spread = np.concatenate([self.stretch.spread, noise])
        slack = np.ascontiguousarray(np.diag(np.concatenate([np.zeros(self.n), noise]))[:, self.n :])
        s, E, gains = np.empty((N, q)), np.zeros((N, q, p + 1)), np.zeros((N, q, size))
        solver.forward(
            self.flow, self.defects, self.residuals, self.seen, self.direct, np.zeros(size), spread, slack,
            np.empty((N, size, size)), np.empty((N, size, p + 1)), gains, s, E, np.zeros((p, p)), np.zeros(p),
        )  # fmt: skip
        scaled = _over_spread(E, s)
        errors = np.where((s > 0).T, -scaled[..., p], np.nan)
        return errors, np.ascontiguousarray(scaled[..., :p]), gains, s


def _over_spread(innovations: Array, variances: Array) -> Array:
    """Changes [q, N, T] of the innovations [N, q, T] over their spread; 0 where a sample is missing."""
    used = variances > 0
    weight = np.where(used, 1.0 / np.sqrt(np.where(used, variances, 1.0)), 0.0)
    return np.ascontiguousarray((-innovations * weight[..., None]).swapaxes(0, 1))


def _interpolants(s: Stretch) -> tuple[float, float, Array]:
    if s.inputs is None or not s.inputs.count:
        return s.origin, float(s.times[1] - s.times[0]), np.zeros((0, 1, 4))
    return s.inputs.t0, s.inputs.dt, s.inputs.coefficients


def hum_columns(hum: Sequence[Hum], part: Linearisation) -> Array:
    """Sensitivities [q, N, 3 tones] of the innovations to each tone's cosine, sine and frequency."""
    shifts = np.zeros((part.N, part.q, 3 * len(hum)))
    for i, tone in enumerate(hum):
        if tone.run == part.stretch.record:
            slopes = tone.slopes(part.stretch.times) / part.stretch.sigma[tone.output]
            shifts[:, tone.output, 3 * i : 3 * i + 3] = slopes
    return part.columns(np.zeros((part.N - 1, part.n, shifts.shape[2])), shifts)


def _free_of_hum(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: list[Regression]
) -> list[Regression]:
    """The same with the tones that were fitted along projected out: they are unknowns, too."""
    if not fitted.experiment.hum:
        return regressions
    columns = [hum_columns(fitted.experiment.hum, part) for part in linear]
    size = columns[0].shape[2]
    flat = [c.reshape(-1, size) for c in columns]
    H = pseudo_inverse(np.asarray(sum(c.T @ c for c in flat)))
    pairs = list(zip(flat, regressions, strict=True))
    follow = H @ sum(c.T @ r.jacobian.reshape(len(c), -1) for c, r in pairs)
    taken = H @ sum(c.T @ np.nan_to_num(r.errors).ravel() for c, r in pairs)
    return [
        Regression(r.errors - c @ taken, r.jacobian - c @ follow, r.record)
        for c, r in zip(columns, regressions, strict=True)
    ]


def joined(regressions: Sequence[Regression]) -> tuple[Array, Array]:
    """Information and score of all stretches together."""
    return (
        np.asarray(sum(r.information for r in regressions)),
        np.asarray(sum(r.score for r in regressions)),
    )


def linearisations(fitted: Fitted, cuts: int = 1) -> list[Linearisation]:
    """The pieces of a fit, linearised; ``cuts``: each in that many parts with initial states of their own."""
    kernels = fitted.experiment.model.kernels()
    steps = fitted.steps
    spread = _DIFFUSE * np.ptp(np.hstack([piece.states for piece in fitted.pieces]), axis=1)
    spread[spread == 0] = _DIFFUSE
    model = fitted.experiment.model
    switching = switching_in(model, fitted.values[0]) if fitted.engine == "shooting" else None
    found = []
    for piece in fitted.pieces:
        edges = np.linspace(0, len(piece.times), cuts + 1).astype(int)
        for a, b in pairwise(edges):
            if b - a > 1 and np.isfinite(piece.residuals[:, a:b]).any():
                stretch = _stretch(fitted, piece, slice(a, b), spread)
                found.append(Linearisation(kernels, stretch, len(fitted.unknowns), steps))
                if switching is not None:
                    meet_jumps(found[-1], model, switching)
    return found


def _stretch(fitted: Fitted, piece: Piece, part: slice, spread: Array) -> Stretch:
    """A part of a piece, with the unknowns that hold in its record."""
    here = [(u.index, i) for i, u in enumerate(fitted.unknowns) if u.record in (-1, piece.record)]
    here.sort()
    run = piece.run
    if piece.first + part.start == 0 and run.initial_known.any():
        spread = np.where(run.initial_known, _KNOWN * spread, spread)
    noise = run.input_noise if fitted.inputs_estimated else np.zeros(run.inputs.count)
    return Stretch(
        np.ascontiguousarray(piece.times[part]),
        np.ascontiguousarray(piece.states[:, part]),
        np.ascontiguousarray(run.outputs[:, piece.first : piece.stop][:, part]),
        np.ascontiguousarray(fitted.values[piece.record]),
        np.array([index for index, _ in here], dtype=np.int64),
        np.array([column for _, column in here], dtype=np.int64),
        fitted.sigma[piece.record],
        run.inputs if run.inputs.count else None,
        noise,
        spread,
        float(run.times[0]),
        piece.record,
    )


def regressions_of(fitted: Fitted, linear: Sequence[Linearisation]) -> tuple[list[Regression], bool]:
    """The linearised pieces, and whether the flow could be followed; else as the fit itself has them."""
    found = [part.regression() for part in linear]
    if all(r.finite for r in found):
        return _free_of_hum(fitted, linear, found), True
    return [
        Regression(piece.residuals / fitted.sigma[piece.record][:, None], piece.jacobian, piece.record)
        for piece in fitted.pieces
    ], False
