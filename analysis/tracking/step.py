"""One sample of the tracking loop, compiled: adaptive filters, phase and amplitude control, the next drive.

Signals are followed as y = c_0 + Re sum_k c_k exp(i k theta) with the loop's own phase theta; each sample
moves the coefficients by its misfit (Widrow and Glover 1975), so c_k follows with the rate ``FILTER``.
Nothing is allocated.
"""

from __future__ import annotations

import numpy as np
from numba import complex128, float64

from analysis.base.compiling import njit

_vector = float64[::1]
_harmonics = complex128[::1]

TWO_PI = 2 * np.pi
BY_FREQUENCY, BY_FORCE = 0.0, 1.0  # what holds the phase: the drive's frequency, or the phase of its force
RESPONSE, FORCE = 0.0, 1.0  # whose amplitude is held

# places in ``rules``
(MODE, HELD, RATE, FILTER, PROPORTIONAL, INTEGRAL, PHASE_PROPORTIONAL, PHASE_INTEGRAL, BOUND, GAIN, TURN,
 DAMPING, LOWEST, HIGHEST, SKEW, MOST, GRACE) = range(17)  # fmt: skip
# places in ``goal``: value of the held amplitude and phase from, to; frequency from, to; samples of the ramp
(FROM, TO, PHASE_FROM, PHASE_TO, FREQUENCY_FROM, FREQUENCY_TO, RAMP) = range(7)
# places in ``memory``
(THETA, OMEGA, SUM_RE, SUM_IM, PHASE_SUM, PASSED, AWAY, LOST, LEVEL, PHASE_GOAL, DRIVE_RE, DRIVE_IM, FULL,
 AGE, FADE) = range(15)  # fmt: skip
FADE_TURNS = 3.0  # of the drive, in which it falls to zero after it was lost


@njit(cache=True, nogil=True)
def _follow(c, sample, theta, rate):  # type: ignore[no-untyped-def]
    """Move the coefficients towards the sample; ``rate``: share of the misfit that a harmonic takes."""
    guess = c[0].real
    for k in range(1, len(c)):
        guess += c[k].real * np.cos(k * theta) - c[k].imag * np.sin(k * theta)
    miss = sample - guess
    c[0] += 0.5 * rate * miss
    for k in range(1, len(c)):
        c[k] += rate * miss * complex(np.cos(k * theta), -np.sin(k * theta))


@njit(cache=True, nogil=True)
def _wrapped(angle):  # type: ignore[no-untyped-def]
    return angle - TWO_PI * np.floor((angle + np.pi) / TWO_PI)


@njit(float64(_vector, _vector, _vector, _vector, _harmonics, _harmonics), cache=True, nogil=True)
def track(samples, rules, goal, memory, response, force):  # type: ignore[no-untyped-def]
    """The drive in volts after the ``samples`` (response, force) of this moment."""
    rate = rules[RATE]
    theta = memory[THETA]
    share = rules[FILTER] / rate
    if np.isfinite(samples[0]):
        _follow(response, samples[0], theta, share)
    if np.isfinite(samples[1]):
        _follow(force, samples[1], theta, share)
    x, f = response[1], force[1]
    moved = min(1.0, memory[PASSED] / goal[RAMP]) if goal[RAMP] > 0.0 else 1.0
    moved = moved * moved * (3.0 - 2.0 * moved)
    level = goal[FROM] + (goal[TO] - goal[FROM]) * moved
    wanted_phase = goal[PHASE_FROM] + (goal[PHASE_TO] - goal[PHASE_FROM]) * moved
    memory[PASSED] += 1.0
    memory[AGE] += 1.0
    memory[LEVEL], memory[PHASE_GOAL] = level, wanted_phase
    _watch(rules, memory, abs(x))
    if memory[LOST] > 0.0:
        memory[FADE] = max(0.0, memory[FADE] - memory[OMEGA] / (TWO_PI * FADE_TURNS * rate))
        drive = complex(memory[DRIVE_RE], memory[DRIVE_IM]) * memory[FADE]
    else:
        if rules[MODE] == BY_FORCE:
            drive = _complex_drive(rules, memory, level, x)
            frequency = goal[FREQUENCY_FROM] + (goal[FREQUENCY_TO] - goal[FREQUENCY_FROM]) * moved
            memory[OMEGA] = TWO_PI * frequency
        else:
            drive = _locked_drive(rules, memory, level, wanted_phase, x, f)
        memory[DRIVE_RE], memory[DRIVE_IM] = drive.real, drive.imag
    memory[THETA] = (theta + memory[OMEGA] / rate) % TWO_PI
    return drive.real * np.cos(theta) - drive.imag * np.sin(theta)


@njit(cache=True, nogil=True)
def _watch(rules, memory, size):  # type: ignore[no-untyped-def]
    """Notice a response that is larger than it ever should be, for longer than a turn."""
    memory[AWAY] = memory[AWAY] + 1.0 if size > rules[MOST] else 0.0
    if memory[AWAY] * memory[OMEGA] > TWO_PI * rules[RATE] and memory[LOST] == 0.0:
        memory[LOST] = 1.0


@njit(cache=True, nogil=True)
def _complex_drive(rules, memory, level, x):  # type: ignore[no-untyped-def]
    """Amplitude and phase of the response held by those of the drive, at a given frequency."""
    miss = level - x
    h = 1.0 / rules[RATE]
    total = complex(memory[SUM_RE], memory[SUM_IM]) + rules[INTEGRAL] * miss * h
    drive = (
        (rules[PROPORTIONAL] * miss + total)
        / rules[GAIN]
        * complex(np.cos(rules[TURN]), -np.sin(rules[TURN]))
    )
    size = abs(drive)
    memory[FULL] = 1.0 if size > rules[BOUND] else 0.0
    if size > rules[BOUND]:  # what is at its bound is not summed up
        return drive * (rules[BOUND] / size)
    memory[SUM_RE], memory[SUM_IM] = total.real, total.imag
    return drive


@njit(cache=True, nogil=True)
def _locked_drive(rules, memory, level, wanted_phase, x, f):  # type: ignore[no-untyped-def]
    """Phase between response and force held by the frequency, an amplitude by that of the drive."""
    h = 1.0 / rules[RATE]
    held = abs(x) if rules[HELD] == RESPONSE else abs(f)
    miss = level - held
    ahead = rules[DAMPING] * level  # what a linear specimen needs
    total = memory[SUM_RE] + rules[INTEGRAL] * miss * h
    size = (rules[PROPORTIONAL] * miss + total + ahead) / rules[GAIN]
    memory[FULL] = 1.0 if size > rules[BOUND] else 0.0
    if size > rules[BOUND]:
        size = rules[BOUND]
    elif size < 0.0:
        size = 0.0
    else:
        memory[SUM_RE] = total
    grace = memory[AGE] * memory[OMEGA] < TWO_PI * rules[GRACE] * rules[RATE]
    if not grace and abs(x) > 0.0 and abs(f) > 0.0:
        off = _wrapped(np.angle(x) - np.angle(f) + memory[OMEGA] * rules[SKEW] - wanted_phase)
        summed = memory[PHASE_SUM] + rules[PHASE_INTEGRAL] * off * h
        omega = summed + rules[PHASE_PROPORTIONAL] * off
        low, high = TWO_PI * rules[LOWEST], TWO_PI * rules[HIGHEST]
        if low <= omega <= high:
            memory[PHASE_SUM] = summed
        memory[OMEGA] = min(max(omega, low), high)
    return complex(size, 0.0)
