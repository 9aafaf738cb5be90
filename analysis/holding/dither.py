"""The dither test: what a small correction does to a specimen at rest, before an orbit is held.

A multisine of corrections, repeated, passes the loop as any correction does. From its answer in the channels:
gain, lag and delay of the path to the force, and resonances that the sensors see but the model does not have
(spillover). The linear answer of x' = A x + B s, lag s' + s = gain c(t - delay), y = C x + D s is computed
exactly from sample to sample, the command held in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.holding.plant import ActuatorPath, Mode
from analysis.model import Model

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

TRUST = 0.05  # share of an answer by which the model at rest may be wrong
LOWEST, HIGHEST = 0.3, 8.0  # band over the drive's frequency
BAND_END = 0.35  # of the sample rate
REPEATS = 10
LINES = 40
OWN_CLOCK = 0.05  # share by which the loop's own measure of its delay is believed to be off
GAIN_OFF = 0.3  # share by which the gain of drive and correction may differ
BENT = 0.01  # share of the largest answer that the specimen's own nonlinearity may add elsewhere
OWN_BAND = 0.3  # about a resonance of the model, relative: what it misses there is its own damping
MODE_GAIN = 3.0  # by which a mode must lower what is unexplained, in squares
LOUD = 2.5  # an unexplained answer over its error that calls for a mode
STRANGE = 8.0  # unexplained answers over their errors (rms) that another specimen gives


class Dither:
    """A controller that plays one sequence again and again, whatever it sees."""

    holding = False
    shown = 0.0

    def __init__(self, channels: Sequence[str], sequence: Array) -> None:
        self.channels, self._sequence, self._place = tuple(channels), sequence, 0
        self.bound = float(np.abs(sequence).max())

    def step(self, samples: Array, phase: float, applied: float) -> float:
        value = float(self._sequence[self._place])
        self._place = (self._place + 1) % len(self._sequence)
        return value

    def adopt(self, other: object) -> None:
        """There is nothing to take over."""


def dither_sequence(frequency: float, rate: float, rms: float, seed: int = 0) -> Array:
    """One period of a multisine with random phases around the drive's ``frequency``, in volts.

    Odd lines only: what the specimen's asymmetry makes of them falls on even ones (Pintelon and Schoukens).
    """
    low, high = LOWEST * frequency, min(HIGHEST * frequency, BAND_END * rate)
    length = int(np.ceil(2 * LINES * rate / (high - low)))
    lines = np.arange(int(np.ceil(low * length / rate)) | 1, int(high * length / rate) + 1, 2)
    rng = np.random.default_rng(seed)
    best: Array | None = None
    for _ in range(30):  # the smallest peak of some
        spectrum = np.zeros(length // 2 + 1, dtype=complex)
        spectrum[lines] = np.exp(2j * np.pi * rng.random(len(lines)))
        wave = np.fft.irfft(spectrum, length)
        wave *= rms / np.sqrt(np.mean(wave**2))
        if best is None or np.abs(wave).max() < np.abs(best).max():
            best = wave
    assert best is not None
    return best


@dataclass(frozen=True, eq=False)
class Response:
    """Answers to the dither at its lines [channels, lines], with their standard errors."""

    omega: Array  # rad/s
    answers: Complex
    errors: Array
    rest: Array  # [channels] mean of each


def response(samples: Array, commands: Array, sequence: Array, rate: float) -> Response:
    """From samples [channels, N] and commands [N] over several periods of the ``sequence``.

    The commands are those that went out, missed deadlines and all: each period has its own spectrum.
    """
    length = len(sequence)
    count = samples.shape[1] // length
    if count < 4:
        raise DataError("The dither test needs at least four of its periods.")
    cut = samples[:, -count * length :].reshape(len(samples), count, length)
    told = commands[-count * length :].reshape(count, length)
    wanted = np.abs(np.fft.rfft(sequence))
    lines = np.flatnonzero(wanted > 1e-3 * wanted.max())
    spectra, drive = np.fft.rfft(cut, axis=2)[:, :, lines], np.fft.rfft(told, axis=1)[:, lines]
    power = np.sum(np.abs(drive) ** 2, axis=0)
    answers = np.sum(spectra * drive.conj(), axis=1) / power
    left = spectra - answers[:, None] * drive
    errors = np.sqrt(np.sum(np.abs(left) ** 2, axis=1) / (count - 1) / power)
    return Response(2 * np.pi * rate * lines / length, answers, errors, cut.mean(axis=(1, 2)))


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
    D: Array


def at_rest(model: Model, channels: Sequence[str], states: Array, force: float) -> _Linear:
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
    return _Linear(A, B[:, 0], C[rows], np.zeros(len(rows)))


@dataclass(frozen=True)
class DitherResult:
    """What the test found, and what is left unexplained (rms over its expected error)."""

    path: ActuatorPath
    modes: tuple[Mode, ...]
    unexplained: float


def read_dither(
    found: Response, model: Model, channels: Sequence[str], states: Array, tick: float, start: ActuatorPath
) -> DitherResult:
    """Path and modes from the answers; the last row of ``found`` is the force, the others ``channels``.

    ``states``: where the specimen rests. ``start``: the gain of the drive at its frequency, the delay that
    the loop measured itself, which counts as one more datum: a force that is sampled when the converter is
    updated tells the delay to whole samples only. DataError where the answer is not that of this model.
    """
    from scipy.optimize import least_squares

    rest = at_rest(model, channels, states, float(found.rest[-1]))
    force = _Linear(np.zeros((0, 0)), np.zeros(0), np.zeros((1, 0)), np.ones(1))

    def answers(p: Array) -> Complex:
        path = ActuatorPath(float(p[0]), float(p[2]) * tick, float(p[1]) * tick)
        own = discrete_response(rest.A, rest.B, rest.C, rest.D, path, tick, found.omega)
        pushed = discrete_response(force.A, force.B, force.C, force.D, path, tick, found.omega)
        return np.concatenate([own, pushed])

    weight = 1 / np.hypot(found.errors, TRUST * np.abs(found.answers).max(axis=1, keepdims=True))

    def misses(p: Array) -> Array:
        miss = (answers(p) - found.answers) * weight
        own = (p[1] - first[1]) / (OWN_CLOCK * first[1] + 0.02)
        return np.concatenate([miss.real.ravel(), miss.imag.ravel(), [own]])

    first = np.array([start.gain, max(start.delay / tick, 0.05), max(start.lag / tick, 0.02)])
    lower, upper = first * [0.2, 0.0, 0.0], [5 * first[0], first[1] + 20.0, 20.0]
    swap = first[0] < 0
    if swap:
        lower[0], upper[0] = 5 * first[0], 0.2 * first[0]
    fit = least_squares(misses, first, bounds=(lower, upper), x_scale=np.abs(first), loss="soft_l1")
    gain, delay, lag = (float(v) for v in fit.x)
    path = ActuatorPath(gain, lag * tick, delay * tick, start.jitter)
    if abs(gain / start.gain - 1) > GAIN_OFF:
        raise DataError(
            f"A correction moves the force by {gain:.3g} a volt, the drive itself by {start.gain:.3g}: the "
            "path of the loop is not that of the drive."
        )
    ours = answers(fit.x)[:-1]
    left = found.answers[:-1] - ours
    # Far from its own resonance the model is right; harmonics of a large answer are no modes.
    bent = BENT * np.abs(found.answers[:-1]).max(axis=1, keepdims=True)
    local = 1 / np.hypot(found.errors[:-1], np.hypot(2 * TRUST * np.abs(ours), bent))
    local[:, _near_own(rest.A, found.omega)] = 0.0  # dry friction damps small motions more than large ones
    modes, left = _modes(left, local, path, tick, found.omega)
    loud = float(np.sqrt(np.mean((np.abs(left) * weight[:-1]) ** 2) / 2))
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


def _modes(
    left: Complex, weight: Array, path: ActuatorPath, tick: float, omega: Array
) -> tuple[tuple[Mode, ...], Complex]:
    """At most one resonance in what is unexplained [channels, lines], and what it leaves."""
    from scipy.optimize import minimize

    loud = np.abs(left) * weight
    if loud.max() < LOUD:
        return (), left

    def explained(w: float, z: float) -> tuple[Complex, Array]:
        A = np.array([[0.0, 1.0], [-w * w, -2 * z * w]])
        basis = discrete_response(A, np.array([0.0, 1.0]), np.eye(2), np.zeros(2), path, tick, omega)
        scale = np.abs(basis).max(axis=1)
        fitted, shows = np.empty_like(left), np.empty((len(left), 2))
        for c in range(len(left)):
            columns = (basis / scale[:, None]).T * weight[c][:, None]
            stacked = np.concatenate([columns.real, columns.imag])
            goal = left[c] * weight[c]
            r, *_ = np.linalg.lstsq(stacked, np.concatenate([goal.real, goal.imag]), rcond=None)
            shows[c] = r / scale
            fitted[c] = shows[c] @ basis
        return fitted, shows

    def cost(p: Array) -> float:
        if not (omega[0] < p[0] < omega[-1] and 1e-4 < np.exp(p[1]) < 0.3):
            return 1e300
        return float(np.sum((np.abs(left - explained(float(p[0]), float(np.exp(p[1])))[0]) * weight) ** 2))

    heard = np.asarray(weight.any(axis=0))
    between = [
        0.5 * (a + b) for (a, b), on in zip(pairwise(omega), heard[1:] & heard[:-1], strict=True) if on
    ]
    starts = [
        (cost(np.array([w, np.log(z)])), w, np.log(z)) for w in between for z in (0.003, 0.01, 0.03, 0.1)
    ]
    _, w, z = min(starts)
    fit = minimize(cost, [w, z], method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
    frequency, damping = float(fit.x[0]), float(np.exp(fit.x[1]))
    before = float(np.sum(loud**2))
    if before < MODE_GAIN * fit.fun or not heard[np.argmin(np.abs(omega - frequency))]:
        return (), left
    fitted, shows = explained(frequency, damping)
    mode = Mode(frequency, damping, tuple((float(a), float(b)) for a, b in shows))
    return (mode,), left - fitted
