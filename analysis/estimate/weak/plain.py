"""The weak form as published: cubic B-splines on the samples as state, input and test functions.

Liu, Fang, Wang, Xu 2018, sections 3.1 and 3.2: states and inputs are interpolated by cubic splines through
all samples (natural ends, eq. 18), the test functions are the cubic B-splines of the same knots (eq. 16),
the integrals of eqs. (22), (23) are taken by Gauss quadrature, and the sum of squares (25) over i = 3 .. N -
3 is minimised by Gauss-Newton (43), (44), in one step when the parameters enter linearly (33). Rows have no
weights.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.identification import Residual
from analysis.base.progress import Progress
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.start import OwnEstimate, Start
from analysis.estimate.weak.system import Equation, Nodes, WeakSystem
from analysis.experiment import Experiment, Run
from analysis.experiment.states import state_samples
from analysis.signal.splines import Probes

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

REFERENCES = ["Z. Liu, H. Fang, K.-W. Wang, J. Xu, Mech. Syst. Signal Process. 108 (2018) 97-111"]
_CUTOFF = 1e-5  # of the largest relative step, the paper's
_MOST = 60
_SHORTEST = 12  # samples of a stretch
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(4)  # exact for a linear f of a cubic spline


def start_plain(experiment: Experiment, progress: Progress) -> Start:
    """The published method; the convergence history holds the parameters of each iteration."""
    exact = replace(experiment.conditions, denoise=False, part=())  # the records are cut already
    runs = Experiment(experiment.given, experiment.records, exact).runs
    model = experiment.model
    systems = [s for run in runs for s in _systems(model, run)]
    if not systems:
        raise DataError("The record is too short for the weak form.")
    free = [model.index(name) for name in model.free]
    p = model.values()
    history: list[dict[str, float]] = []
    converged, iteration = False, 0
    information, cost, rows = np.eye(len(free)), np.inf, 1
    for iteration in range(1, _MOST + 1):
        information, gradient, cost, rows = _normal(systems, p, free)
        if not np.isfinite(cost):
            break
        step = pseudo_inverse(information) @ gradient
        p[free] += step
        relative = float(np.max(np.abs(step) / np.maximum(np.abs(p[free]), 1e-300)))
        history.append({"cost": cost, "step": relative, **dict(zip(model.free, p[free], strict=True))})
        progress.report(iteration / (iteration + 5), "weak form", cost=cost, step=relative)
        if relative < _CUTOFF or model.is_linear:
            converged = True
            break
    if np.isfinite(cost):  # what is left at the end, not before the last step
        information, _, cost, rows = _normal(systems, p, free)
    scale = cost / max(rows - len(free), 1)
    names = list(model.free)
    own = OwnEstimate(
        names,
        p[free],
        information / max(scale, 1e-300),
        residual=Residual(other={"cost": cost, "rows": float(rows)}),
        units={n: model.unit(n) for n in names},
    )
    return Start(
        "weak",
        p,
        converged=converged,
        iterations=iteration,
        evaluations=iteration,
        history=history,
        warnings=["Error bars of the plain method count every row as independent: they are a rough guide."],
        own=own,
        finishable=False,
        references=REFERENCES,
    )


def _normal(systems: list[WeakSystem], p: Array, free: list[int]) -> tuple[Array, Array, float, int]:
    information, gradient, cost, rows = np.zeros((len(free), len(free))), np.zeros(len(free)), 0.0, 0
    for system in systems:
        H, g, squares = system.normal(p, free, np.ones(len(system.rows)))
        information += H
        gradient += g
        cost += squares
        rows += len(system)
    return information, gradient, cost, rows


def _systems(model: Model, run: Run) -> list[WeakSystem]:
    samples = state_samples(model, run, model.values(), smoothed=False)
    if not samples.seen.all():
        hidden = [s for s, seen in zip(model.states, samples.seen, strict=True) if not seen]
        raise DataError(
            f"The published weak form needs every state measured; nothing shows {', '.join(hidden)}."
        )
    equations = [Equation(i) for i in range(len(model.states))]
    inputs = run.inputs.values(run.times)
    valid = np.isfinite(run.outputs[run.measured]).all(axis=0)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], valid, [False]]).astype(int)))
    found = []
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start < _SHORTEST:
            continue
        part = slice(start, stop)
        data, probes = _splined(run.times[part], samples.values[:, part], inputs[:, part])
        found.append(WeakSystem(model.kernels(), data, 1, equations, len(model.parameters), probes))
    return found


def _splined(times: Array, states: Array, inputs: Array) -> tuple[Nodes, Probes]:
    """Splines through the samples at the Gauss points of every interval, and the cubic B-splines there."""
    from scipy.interpolate import CubicSpline

    N, h = len(times), float(times[1] - times[0])
    s = 0.5 * (1 + _POINTS)  # Gauss points in an interval of unit length
    powers = np.stack([s**3, s**2, s, np.ones(4)])  # CubicSpline keeps the highest power first
    scale = np.array([h**3, h**2, h, 1.0])[:, None]

    def at_points(rows: Array) -> Array:
        if len(rows) == 0:
            return np.zeros((0, 4 * (N - 1)))
        c = CubicSpline(times, rows, axis=1, bc_type="natural").c  # [4, N - 1, rows]
        return np.ascontiguousarray(np.einsum("cir,cg->rig", c, powers * scale).reshape(len(rows), -1))

    grid = (times[:-1, None] + h * s).ravel()
    # The four pieces of eq. (16) over t_(i-2) .. t_(i+2), in the unit of the interval.
    value = np.stack([s**3, 1 + 3 * s + 3 * s**2 - 3 * s**3, 4 - 6 * s**2 + 3 * s**3, (1 - s) ** 3]) / 6
    slope = np.stack([3 * s**2, 3 + 6 * s - 9 * s**2, -12 * s + 9 * s**2, -3 * (1 - s) ** 2]) / 6
    weights = 0.5 * _WEIGHTS
    first = 4 * (np.arange(3, N - 3) - 2).astype(np.int64)
    shape = (h * value * weights).reshape(1, -1)
    probes = Probes(first, shape, (slope * weights).reshape(1, -1), np.zeros_like(shape))
    return Nodes(grid, at_points(states), at_points(inputs), np.zeros(1, dtype=np.int64)), probes
