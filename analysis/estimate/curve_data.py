"""Measured curves and decays beside what a model does: residuals over their errors, and derivatives.

Both keep the motions found last as starts for the next ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.dynamics.imposed import DecayingMotion, DecayingMotions, ImposedMotion, ImposedMotions
from analysis.experiment.curves import MeasuredCurve, MeasuredDecay
from analysis.model import Model

Array = NDArray[np.float64]

ASSUMED = {"frequency": 1e-4, "amplitude": 0.01, "force": 0.01}  # relative errors where none are told
ASSUMED_PHASE = 0.02  # rad
GRID = 12  # amplitudes of a decay at which the model is asked
STEP = 1e-5  # of a parameter, for the slopes of decays


@dataclass(frozen=True, eq=False)
class Rows:
    """Whitened residuals, their derivatives by the free parameters, and what is missed in the data's unit."""

    residual: Array
    jacobian: Array
    missed: float  # sum of squares of what is missed
    total: float  # of what was measured
    prior: int = 0  # rows that are no data but what is known of a skew


class CurveData:
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

    @property
    def points(self) -> int:
        return len(self.curve.frequency)

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

    def rows(self, columns: list[int], skew: float, fresh: bool) -> Rows:
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
        return Rows(np.concatenate(residuals), np.concatenate(slopes), missed, total, int(self.skewed))


class DecayData:
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

    @property
    def points(self) -> int:
        return len(self.decay.time)

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

    def rows(self, columns: list[int], begun: float, fresh: bool) -> Rows:
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
        return Rows(np.concatenate([late, off]), slopes, missed, float(len(late) + len(off)))


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
