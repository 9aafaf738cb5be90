"""The Lyapunov spectrum of a model from its variational equations, with an error bar.

Tangent vectors are carried along the motion and made orthonormal again after every step (Benettin et al.
1980); the mean growth of each is its exponent, in nats or bits per unit time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from analysis.base.compiling import njit
from analysis.base.errors import DataError
from analysis.base.progress import SILENT, Progress
from analysis.model import Model
from analysis.model.compiled import COMPILED
from analysis.model.kernels import JAC_TYPE
from analysis.signal.inputs import Inputs
from analysis.simulation.integrate import (
    ADAPTIVE_ROWS,
    adaptive_step,
    before,
    breaks_until,
    first_step,
    inside,
    next_break,
)
from analysis.simulation.rounding import slope_noise
from analysis.simulation.simulate import BOUND, States, Values, initial_vector, parameter_vector
from analysis.simulation.slope import FLOAT, INT, MATRIX, SYSTEM_TYPE, VECTOR, slope, system_of

Array = NDArray[np.float64]

# Blocks on either side of a change of regime, and Student's t of their means beyond which it is one: below
# 1e-4 by chance at the most probable of some twenty places.
_LEAST_BLOCKS, _CHANGED = 3, 6.0
_NOT_CHAOTIC = 0.1  # of the exponent before, at most, for a motion that became regular


@dataclass(frozen=True, eq=False)
class LyapunovSpectrum:
    """Exponents in falling order, in nats per unit time, with standard errors from blocks of the run."""

    exponents: Array
    stderr: Array
    blocks: Array  # rates[m, blocks] of consecutive stretches of equal length
    duration: float
    final_state: Array

    @property
    def left_chaos(self) -> float | None:
        """Time of the run at which a chaotic motion settled on a regular one; None if it never did.

        A motion may be chaotic for hundreds of periods and still end on a periodic one (transient chaos,
        Grebogi, Ott and Yorke 1983). The mean over such a run is an exponent of neither motion.
        """
        split = _regime_change(self.blocks[0])
        if split is None or not self.blocks[0][:split].mean() > 0:
            return None
        later = self.blocks[0][split:]
        bound = _NOT_CHAOTIC * float(self.blocks[0][:split].mean())
        return split * self.duration / self.blocks.shape[1] if later.mean() < bound else None

    @property
    def bits(self) -> Array:
        """Exponents in bits per unit time."""
        return self.exponents / np.log(2)

    @property
    def bits_stderr(self) -> Array:
        return self.stderr / np.log(2)

    @property
    def dimension(self) -> float:
        """Kaplan-Yorke dimension in the space of the states; not-a-number if too few exponents are known."""
        total = np.cumsum(self.exponents)
        if total[0] < 0:
            return 0.0
        last = int(np.flatnonzero(total >= 0)[-1])
        if last + 1 == len(total):
            return float("nan")
        return float(last + 1 + total[last] / -self.exponents[last + 1])

    def __str__(self) -> str:
        rows = [f"{v:.4g} ± {e:.2g}" for v, e in zip(self.bits, self.bits_stderr, strict=True)]
        left = self.left_chaos
        end = "" if left is None else f"; the motion left chaos after {left:.3g}: they mix two motions"
        return f"Lyapunov exponents {', '.join(rows)} bits per unit time{end}"


def lyapunov_spectrum(
    model: Model,
    duration: float,
    transient: float = 0.0,
    initial: States = None,
    values: Values = None,
    inputs: Inputs | None = None,
    count: int | None = None,
    blocks: int = 20,
    start: float = 0.0,
    rtol: float = 1e-8,
    progress: Progress = SILENT,
) -> LyapunovSpectrum:
    """The ``count`` largest exponents (all by default) of the motion over ``duration`` after ``transient``.

    Lengths of time are in the model's unit. The error is that of the mean over ``blocks``, or, where the run
    changed from one kind of motion to another, the distance between these; it does not see what the run
    never visited.
    """
    if not (duration > 0 and transient >= 0 and blocks >= 2):
        raise DataError(
            "A spectrum needs a positive duration, no negative transient and at least two blocks."
        )
    given = Inputs.none() if inputs is None else inputs
    given.check(model.inputs, start, start + transient + duration)
    x, p = initial_vector(model, initial), parameter_vector(model, values)
    n = len(x)
    m = n if count is None else min(max(int(count), 1), n)
    y = np.concatenate([x, np.eye(n, m).ravel()])
    system = system_of(n, p, given, np.full(m, -1, dtype=np.int64))
    work, logs = np.empty((ADAPTIVE_ROWS, len(y))), np.zeros(m)
    kernel, stretch = model.kernels().jac, compiled_stretch()
    edges = start + transient + duration * np.arange(blocks + 1) / blocks
    rates = np.empty((m, blocks))
    for block in range(-1, blocks):
        a, b = (start, edges[0]) if block < 0 else (edges[block], edges[block + 1])
        logs[:] = 0.0
        u = given.values(np.array([a]))[:, 0].copy()
        noise = slope_noise(model.kernels().rhs, a, y[:n], np.abs(y[:n]), u, p, duration)
        reached = stretch(kernel, system, a, b, y, n, given.breaks, rtol, noise, BOUND, work, logs)
        if reached < b:
            raise DataError(f"{model.name}: the motion diverged at t = {reached:g}, so it has no exponents.")
        if block >= 0:
            rates[:, block] = logs / (b - a)
        progress.report((block + 2) / (blocks + 1), "Lyapunov spectrum")
    mean = rates.mean(axis=1)
    error = np.array([_error(row) for row in rates])
    order = np.argsort(-mean)
    return LyapunovSpectrum(mean[order], error[order], rates[order], float(duration), y[:n].copy())


def _regime_change(rates: Array) -> int | None:
    """Number of blocks before the growth changed for good; None if all blocks may be of one motion."""
    count = len(rates)
    best, place = 0.0, None
    for k in range(_LEAST_BLOCKS, count - _LEAST_BLOCKS + 1):
        before_it, after = rates[:k], rates[k:]
        within = ((before_it - before_it.mean()) ** 2).sum() + ((after - after.mean()) ** 2).sum()
        size = np.sqrt(within / (count - 2) * (1 / k + 1 / (count - k)))
        distance = abs(after.mean() - before_it.mean())
        if distance > max(best, _CHANGED) * size and distance > 0:
            best, place = float(distance / max(size, 1e-300)), k
    return place


def _error(rates: Array) -> float:
    """Standard error of the mean growth: of blocks of one motion, or across a change between two."""
    count, split = len(rates), _regime_change(rates)
    error = float(rates.std(ddof=1) / np.sqrt(count))
    if split is None:
        return error
    share = split / count
    return max(error, float(np.sqrt(share * (1 - share)) * abs(rates[:split].mean() - rates[split:].mean())))


@njit(**COMPILED)
def orthonormalise(y, n, m, logs):  # type: ignore[no-untyped-def]
    """Gram-Schmidt of the columns of S in y, in place; the logarithms of their lengths are added to logs."""
    for c in range(m):
        for other in range(c):
            dot = 0.0
            for i in range(n):
                dot += y[n + i * m + c] * y[n + i * m + other]
            for i in range(n):
                y[n + i * m + c] -= dot * y[n + i * m + other]
        size = 0.0
        for i in range(n):
            size += y[n + i * m + c] ** 2
        size = np.sqrt(size)
        logs[c] += np.log(size)
        for i in range(n):
            y[n + i * m + c] /= size


def _stretch(f, system, start, end, state, n, breaks, rtol, noise, bound, work, logs):  # type: ignore[no-untyped-def]
    """Carry states and tangent vectors to the end, adding up the logarithms of growth; the time reached."""
    size, m, dt = len(state), len(logs), system[3]
    y, y_new, w, peak, k = work[0], work[1], work[2], work[3], work[4:]
    for i in range(size):
        y[i] = state[i]
    t = start
    jump = breaks_until(breaks, t + 1e-9 * dt)
    h = -1.0
    for i in range(n):
        peak[i] = abs(y[i])
    while t < end:
        limit = next_break(breaks, jump)
        latest = before(limit, dt)
        slope(f, system, t, latest, y, k[0])
        if h < 0:
            h = first_step(f, system, t, latest, y, k, w, n, rtol, 0.0, noise, end - t)
        for i in range(size):
            peak[i] = 1.0 if i >= n else max(peak[i], abs(y[i]))
        stop = min(end, limit)
        reached, h = adaptive_step(f, system, t, h, stop, latest, y, k, w, y_new, n, rtol, 0.0, noise, peak)
        if reached == t:
            return t
        t = reached
        for i in range(size):
            y[i] = y_new[i]
        if not inside(y, n, bound):
            return t
        orthonormalise(y, n, m, logs)
        if reached == limit:
            jump += 1
    for i in range(size):
        state[i] = y[i]
    return t


@lru_cache(maxsize=1)
def compiled_stretch() -> Any:
    signature = types.float64(
        JAC_TYPE, SYSTEM_TYPE, FLOAT, FLOAT, VECTOR, INT, VECTOR, FLOAT, VECTOR, FLOAT, MATRIX, VECTOR
    )
    return njit(signature, **COMPILED)(_stretch)
