"""What the answers to the dither tell: the path of a correction, and a resonance beside the model.

Path and resonance are fitted together: a resonance that the path's fit does not know of is taken for delay.
So is what the model at rest has wrong; dry friction damps small motions several times as much as large ones.
The model at rest may therefore be wrong by a feedback of its states to its input.

The linear answer of x' = A x + B s, lag s' + s = gain c(t - delay), y = C x + D s is computed exactly from
sample to sample, the command held in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.dither import Response
from analysis.holding.plant import ActuatorPath, Mode
from analysis.model import Model

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

TRUST = 0.05  # share of an answer by which the model at rest may be wrong
OWN_CLOCK = 0.05  # share by which the loop's own measure of its delay is believed to be off
FEEDBACK = 0.3  # by which the model's forces at rest may be wrong, over what moves it at its fastest rate
GAIN_OFF = 0.3  # share by which the gain of drive and correction may differ
BENT = 0.01  # share of the largest answer that the specimen's own nonlinearity may add elsewhere
OWN_BAND = 0.3  # about a resonance of the model, relative: what it misses there is its own damping
MODE_GAIN = 3.0  # by which a mode must lower what is unexplained, in squares
MODE_NEAR = 0.3  # relative: how far the common fit may move the frequency of a mode
LOUD = 2.5  # an unexplained answer over its error that calls for a mode
STRANGE = 8.0  # unexplained answers over their errors (rms) that another specimen gives


@dataclass(frozen=True)
class DitherResult:
    """What the test found, and what is left unexplained (rms over its expected error)."""

    path: ActuatorPath
    modes: tuple[Mode, ...]
    unexplained: float


def discrete_response(
    A: Array, B: Array, C: Array, D: Array, path: ActuatorPath, tick: float, omega: Array
) -> Complex:
    """[outputs, lines] answer to a command that is held for a tick."""
    from scipy.linalg import expm

    n = len(A)
    lag = max(path.lag, 1e-3 * tick)
    whole, fraction = divmod(max(path.delay / tick, 0.0), 1.0)
    big = np.zeros((n + 2, n + 2))
    big[:n, :n], big[:n, n] = A, B
    big[n, n], big[n, n + 1] = -1 / lag, path.gain / lag
    first, second = expm(big * fraction * tick), expm(big * (1 - fraction) * tick)
    F = second[: n + 1, : n + 1] @ first[: n + 1, : n + 1]
    before = second[: n + 1, : n + 1] @ first[: n + 1, n + 1]
    after = second[: n + 1, n + 1]
    z = np.exp(1j * omega * tick)
    rows = np.concatenate([C, D[:, None]], axis=1)
    right = before[:, None] * z ** (-whole - 1) + after[:, None] * z ** (-whole)
    solved = np.linalg.solve(z[:, None, None] * np.eye(n + 1) - F, right.T[:, :, None])[:, :, 0]
    return np.asarray(rows @ solved.T)


@dataclass(frozen=True, eq=False)
class _Linear:
    """The model at rest."""

    A: Array
    B: Array
    C: Array


def _at_rest(model: Model, channels: Sequence[str], states: Array, force: float) -> _Linear:
    """The model linearised at its equilibrium near ``states`` [n]."""
    kernels, p = model.kernels(), model.values()
    n, k, q = len(model.states), len(model.parameters), len(model.outputs)
    u, dx, A, Jp, B = np.array([force]), np.empty(n), np.empty((n, n)), np.empty((n, k)), np.empty((n, 1))
    x = np.array(states, dtype=np.float64)
    for _ in range(50):
        kernels.jac(0.0, x, u, p, dx, A, Jp)
        step = np.linalg.lstsq(A, -dx, rcond=None)[0]
        x += step
        if np.abs(step).max() < 1e-12 * (1 + np.abs(x).max()):
            break
    kernels.jac(0.0, x, u, p, dx, A, Jp)
    kernels.jac_u(0.0, x, u, p, B)
    y, C, Op = np.empty(q), np.empty((q, n)), np.empty((q, k))
    kernels.out_jac(0.0, x, u, p, y, C, Op)
    rows = [model.outputs.index(name) for name in channels]
    return _Linear(A, B[:, 0], C[rows])


class _Answers:
    """Answers of path, model at rest and a mode to unknowns p: gain, delay and lag (in ticks), feedback of
    each state, then frequency and log damping of the mode.
    """

    def __init__(self, found: Response, rest: _Linear, tick: float, start: ActuatorPath, scale: Array):
        self.found, self.rest, self.tick, self.jitter = found, rest, tick, start.jitter
        n = len(rest.A)
        self.own = slice(3, 3 + n)
        fastest = float(np.abs(np.linalg.eigvals(rest.A)).max())
        self._feedback = fastest / float(np.max(np.abs(rest.B) / scale)) / scale
        path = [start.gain, max(start.delay / tick, 0.05), max(start.lag / tick, 0.02)]
        self.first = np.concatenate([path, np.zeros(n)])

    def path(self, p: Array) -> ActuatorPath:
        return ActuatorPath(float(p[0]), float(p[2]) * self.tick, float(p[1]) * self.tick, self.jitter)

    def linear(self, p: Array) -> Complex:
        """[channels and force, lines] without the mode."""
        path, omega, rest = self.path(p), self.found.omega, self.rest
        A = rest.A + np.outer(rest.B, p[self.own] * self._feedback)
        own = discrete_response(A, rest.B, rest.C, np.zeros(len(rest.C)), path, self.tick, omega)
        none = np.zeros((0, 0))
        force = discrete_response(none, np.zeros(0), np.zeros((1, 0)), np.ones(1), path, self.tick, omega)
        return np.concatenate([own, force])

    def mode(self, p: Array, left: Complex, weight: Array) -> tuple[Complex, Mode]:
        """The part of ``left`` [channels, lines] that the mode explains best, and the mode."""
        w, z = float(p[-2]), float(np.exp(p[-1]))
        fitted, shows = mode_part(w, z, left, weight, self.path(p), self.tick, self.found.omega)
        return fitted, Mode(w, z, tuple((float(a), float(b)) for a, b in shows))

    def fit(self, weight: Array, start: Array) -> Array:
        """The likeliest unknowns; with a mode where ``start`` has one."""
        from scipy.optimize import least_squares

        n, with_mode = len(self.rest.A), len(start) > len(self.first)
        first = self.first

        def misses(p: Array) -> Array:
            left = self.found.answers - self.linear(p)
            if with_mode:
                left[:-1] -= self.mode(p, left[:-1], weight[:-1])[0]
            miss = (left * weight).ravel()
            clock = (p[1] - first[1]) / (OWN_CLOCK * first[1] + 0.02)
            return np.concatenate([miss.real, miss.imag, [clock], p[self.own] / FEEDBACK])

        gains = np.sort([0.2 * first[0], 5 * first[0]])
        lower = np.concatenate([[gains[0], 0.0, 0.0], np.full(n, -2.0)])
        upper = np.concatenate([[gains[1], first[1] + 20.0, 20.0], np.full(n, 2.0)])
        size = np.concatenate([np.abs(first[:3]), np.full(n, 0.1)])
        if with_mode:
            lower = np.concatenate([lower, [(1 - MODE_NEAR) * start[-2], np.log(1e-4)]])
            upper = np.concatenate([upper, [(1 + MODE_NEAR) * start[-2], np.log(0.3)]])
            size = np.concatenate([size, [5e-3 * start[-2], 0.1]])
        found = least_squares(misses, start, bounds=(lower, upper), x_scale=size, loss="soft_l1")
        return np.asarray(found.x)


def read_dither(
    found: Response,
    model: Model,
    channels: Sequence[str],
    states: Array,
    tick: float,
    start: ActuatorPath,
    scale: Array,
) -> DitherResult:
    """Path and modes from the answers; the last row of ``found`` is the force, the others ``channels``.

    ``states``: where the specimen rests; ``scale``: the spread of each state. ``start``: the gain of the
    drive at its frequency, and the delay that the loop measured itself, which counts as one more datum: a
    force that is sampled when the converter is updated tells the delay to whole samples only. DataError where
    the answer is not that of this model.
    """
    rest = _at_rest(model, channels, states, float(found.rest[-1]))
    answers = _Answers(found, rest, tick, start, scale)
    top = np.abs(found.answers).max(axis=1, keepdims=True)
    weight = 1 / np.hypot(found.errors, TRUST * top)
    p = answers.fit(weight, answers.first)
    ours = answers.linear(p)
    left = found.answers - ours
    # Far from its own resonance the model is right; harmonics of a large answer are no modes.
    local = 1 / np.hypot(found.errors, np.hypot(2 * TRUST * np.abs(ours), BENT * top))[:-1]
    local[:, _near_own(rest.A, found.omega)] = 0.0
    modes: tuple[Mode, ...] = ()
    explained = np.zeros_like(left[:-1])
    begun = _mode_in(left[:-1], local, answers.path(p), tick, found.omega)
    if begun is not None:
        weight[:-1] = 1 / np.hypot(found.errors, np.hypot(TRUST * np.abs(ours), BENT * top))[:-1]
        p = answers.fit(weight, np.concatenate([p, begun]))
        explained, mode = answers.mode(p, (found.answers - answers.linear(p))[:-1], weight[:-1])
        modes = (mode,)
    path = answers.path(p)
    if abs(path.gain / start.gain - 1) > GAIN_OFF:
        raise DataError(
            f"A correction moves the force by {path.gain:.3g} a volt, the drive itself by {start.gain:.3g}: "
            "the path of the loop is not that of the drive."
        )
    p[answers.own] = 0.0  # the model as it is
    left = (found.answers - answers.linear(p))[:-1] - explained
    loud = float(np.sqrt(np.mean((np.abs(left) / np.hypot(found.errors, TRUST * top)[:-1]) ** 2) / 2))
    if loud > STRANGE:
        raise DataError(
            f"{model.name} at rest answers otherwise than the specimen (by {loud:.1f} times what its errors "
            "and 5 % allow): the model is not of this specimen, or it rests elsewhere."
        )
    return DitherResult(path, modes, loud)


def _near_own(A: Array, omega: Array) -> NDArray[np.bool_]:
    """Which lines lie about a resonance of the model at rest."""
    found = np.linalg.eigvals(A)
    own = np.abs(found[np.abs(found.imag) > 0])
    return (
        np.any(np.abs(omega[:, None] / own - 1) < OWN_BAND, axis=1)
        if len(own)
        else np.zeros(len(omega), bool)
    )


def mode_part(
    w: float, z: float, left: Complex, weight: Array, path: ActuatorPath, tick: float, omega: Array
) -> tuple[Complex, Array]:
    """What a resonance of ``w`` rad/s and damping ``z`` explains of ``left`` [channels, lines] at best, and
    how much each channel shows of its place and speed."""
    A = np.array([[0.0, 1.0], [-w * w, -2 * z * w]])
    basis = discrete_response(A, np.array([0.0, 1.0]), np.eye(2), np.zeros(2), path, tick, omega)
    size = np.abs(basis).max(axis=1)
    fitted, shows = np.empty_like(left), np.empty((len(left), 2))
    for c in range(len(left)):
        columns = (basis / size[:, None]).T * weight[c][:, None]
        stacked = np.concatenate([columns.real, columns.imag])
        goal = left[c] * weight[c]
        r, *_ = np.linalg.lstsq(stacked, np.concatenate([goal.real, goal.imag]), rcond=None)
        shows[c] = r / size
        fitted[c] = shows[c] @ basis
    return fitted, shows


def _mode_in(left: Complex, weight: Array, path: ActuatorPath, tick: float, omega: Array) -> Array | None:
    """Frequency (rad/s) and log damping of a resonance in what is unexplained [channels, lines], if any."""
    from scipy.optimize import minimize

    loud = np.abs(left) * weight
    if loud.max() < LOUD:
        return None

    def cost(p: Array) -> float:
        if not (omega[0] < p[0] < omega[-1] and 1e-4 < np.exp(p[1]) < 0.3):
            return 1e300
        fitted, _ = mode_part(float(p[0]), float(np.exp(p[1])), left, weight, path, tick, omega)
        return float(np.sum((np.abs(left - fitted) * weight) ** 2))

    heard = np.asarray(weight.any(axis=0))
    between = [
        0.5 * (a + b) for (a, b), on in zip(pairwise(omega), heard[1:] & heard[:-1], strict=True) if on
    ]
    starts = [
        (cost(np.array([w, np.log(z)])), w, np.log(z)) for w in between for z in (0.003, 0.01, 0.03, 0.1)
    ]
    _, w, z = min(starts)
    fit = minimize(cost, [w, z], method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
    before = float(np.sum(loud**2))
    if before < MODE_GAIN * fit.fun or not heard[np.argmin(np.abs(omega - fit.x[0]))]:
        return None
    return np.asarray(fit.x)
