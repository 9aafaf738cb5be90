"""The published method on a record: only its two ends are used, and the user is told what that can know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.identification import Curve, Identification
from analysis.base.record import Record
from analysis.estimate.finish.assemble import write_start
from analysis.estimate.functions.energetic.boundary import BoundaryResult, Ends, boundary_functions
from analysis.estimate.functions.energetic.channels import oscillator_states
from analysis.estimate.functions.energetic.splines import KnownValue
from analysis.estimate.start import Start
from analysis.experiment import Conditions, Experiment
from analysis.signal.smoothing import smooth

if TYPE_CHECKING:
    from analysis.estimate.functions.energetic import Options
    from analysis.model import Model

Array = NDArray[np.float64]
POINTS = 201
LIMITS = (
    "Boundary values alone fix little beyond their Hermite interpolant: the iteration stands still after one "
    "sweep, and its result depends on the initial coefficients. Use the whole record (boundary = no) for a "
    "law with a band."
)


def identify_from_ends(model: Model, records: Sequence[Record], options: Options) -> Identification:
    """c(t) or H over the monotonic motion of one record, from values at its ends."""
    from analysis.estimate.functions.energetic import REFERENCES, triples

    x_name, v_name = oscillator_states(model)
    if len(records) != 1:
        raise DataError("Boundary functions take one record.")
    kind = options.unknown.replace(" ", "")
    if kind not in ("c(t)", "H(x)"):
        raise DataError(f"Boundary functions recover c(t) or H(x), not {options.unknown}.")
    experiment = Experiment(model, records, Conditions(denoise=options.denoise))
    model, record, measured = experiment.model, records[0], experiment.runs[0]
    x, slope = smooth(record[x_name], record.dt)
    v = slope if v_name not in record else record[v_name].copy()
    if options.start:
        x[0], v[0] = options.start
    known = _Known(model, measured.times, measured.inputs.values(measured.times), float(x[0]))
    since = measured.times - measured.times[0]
    a = float(since[-1])
    motion = Ends(float(x[0]), float(x[-1]), float(v[0]), float(v[-1]))
    if kind == "c(t)":
        ends = _ends(triples(options.c_known), 0.0, a, 1.0, 1.0)
        result = boundary_functions(
            "c(t)",
            a,
            motion,
            ends,
            known.force,
            None,
            known.potential(motion),
            options.terms,
            options.tolerance,
        )
    else:
        if np.any(np.diff(x) * np.sign(x[-1] - x[0]) < -1e-9 * np.ptp(x)):
            raise DataError("The motion turns back: boundary functions need a monotonic one; use the record.")
        ends = _ends(
            triples(options.h_known), motion.first, motion.last, motion.first_slope, motion.last_slope
        )
        result = boundary_functions(
            "H(t)", a, motion, ends, known.force, known.damping, 0.0, options.terms, options.tolerance
        )
    start = Start(
        "energetic",
        model.values(),
        converged=result.converged,
        iterations=result.iterations,
        warnings=[LIMITS],
        findings={
            "boundary": {"coefficients": result.coefficients.tolist(), "real_roots": result.real_roots}
        },
        curves=_curves(result, kind, a, since, x, x_name),
        references=REFERENCES[:1],
    )
    return write_start(start, model.name, experiment.given.to_toml(), asdict(options), experiment.about_time)


class _Known:
    """What the model knows, taken apart: v' = force(t) - damping(t) v - (H(x) - H(x0))."""

    def __init__(self, model: Model, times: Array, inputs: Array, origin: float) -> None:
        self._kernels, self._p = model.kernels(), model.values()
        self._times, self._inputs, self._origin = times, inputs, origin

    def _rate(self, x: Array, v: Array, inputs: Array, times: Array) -> Array:
        state = np.ascontiguousarray(np.vstack([x, v]))
        out = np.empty_like(state)
        self._kernels.rhs_many(times, state, np.ascontiguousarray(inputs), self._p, out)
        return out[1]

    def _along(self, v: float) -> Array:
        count = len(self._times)
        return self._rate(np.full(count, self._origin), np.full(count, v), self._inputs, self._times)

    def force(self, t: Array) -> Array:
        from scipy.interpolate import CubicSpline

        return np.asarray(CubicSpline(self._times - self._times[0], self._along(0.0))(t))

    def damping(self, t: Array) -> Array:
        from scipy.interpolate import CubicSpline

        return np.asarray(CubicSpline(self._times - self._times[0], self._along(0.0) - self._along(1.0))(t))

    def potential(self, motion: Ends) -> float:
        """Q(x0) - Q(xa) of the known restoring force, whose value at x0 is part of the force."""
        nodes, weights = np.polynomial.legendre.leggauss(40)
        half = 0.5 * (motion.last - motion.first)
        x = motion.first + half * (nodes + 1.0)
        inputs = np.repeat(self._inputs[:, :1], len(x), axis=1)
        force = self._rate(x, np.zeros(len(x)), inputs, np.full(len(x), self._times[0]))
        return float(half * weights @ (force - self._along(0.0)[0]))


def _ends(
    known: tuple[KnownValue, ...], first: float, last: float, rate_first: float, rate_last: float
) -> Ends:
    """Values and slopes in time at both ends; slopes in x are turned by the velocity."""
    found: dict[tuple[int, int], float] = {}
    for item in known:
        for end, place in enumerate((first, last)):
            if abs(item.at - place) <= 1e-6 * max(abs(last - first), 1e-300):
                found[end, item.derivative] = item.value
    if len(found) < 4:
        raise DataError(
            "Boundary functions need value and slope of the unknown at both ends (c_known or h_known)."
        )
    return Ends(found[0, 0], found[1, 0], found[0, 1] * rate_first, found[1, 1] * rate_last)


def _curves(result: BoundaryResult, kind: str, a: float, times: Array, x: Array, name: str) -> dict[str, Any]:
    """Without bands: boundary data cannot give any."""
    t = np.linspace(0.0, a, POINTS)
    at, label = (t, "t [s]") if kind == "c(t)" else (np.interp(t, times, x), name)
    symbol = kind[0]

    def curve(values: Array) -> Curve:
        unknown = [float("nan")] * POINTS
        return Curve(at.tolist(), values.tolist(), unknown, unknown, label, symbol)

    return {symbol: curve(result.function(t)), f"{symbol} interpolant": curve(result.interpolant(t))}
