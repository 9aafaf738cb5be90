"""Method ``surface``: the restoring force over displacement and velocity, straight from the record.

Masri and Caughey 1979; Liu et al. 2018, eqs. (50), (51). Newton's law gives the force at every sample
without any assumption about its shape,

    F_i = drive_i - m a_i - c (v_i - v_base,i)   against   h_i = x_i - x_base,i + offset

(eq. 50 prints it with the opposite sign). Binned over h, its mean and spread stand beside the force of the
model: a cross-check of any identification, and a first look at a specimen of which nothing is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Curve, Residual
from analysis.base.progress import Progress
from analysis.base.words import percent
from analysis.estimate.finish.judge import SMALL_SHARE
from analysis.estimate.start import Start
from analysis.experiment import Experiment, Run
from analysis.experiment.states import derivative_pairs, state_samples
from analysis.signal.smoothing import smooth

if TYPE_CHECKING:
    from analysis.model import Model

Array = NDArray[np.float64]

_SURE = 6.0  # standard errors by which the forces on the way up and down must differ
_VISIBLE = 0.02  # of the force's range, below which they do not
_FEWEST_BINS = 5
_FEWEST_SAMPLES = 5  # of one direction in a bin, for their scatter to tell the error of their mean
REFERENCES = [
    "S. F. Masri, T. K. Caughey, J. Appl. Mech. 46 (1979) 433",
    "Z. Liu, H. Fang, K.-W. Wang, J. Xu, Mech. Syst. Signal Process. 108 (2018) 97-111",
]


@dataclass(frozen=True, eq=False)
class Surface:
    """Restoring force at every sample, and its mean and spread in bins of displacement."""

    displacement: Array
    velocity: Array
    force: Array
    centres: Array
    mean: Array
    spread: Array  # standard deviation within the bin
    count: NDArray[np.int64]


def restoring_force(
    displacement: Array,
    velocity: Array,
    acceleration: Array,
    mass: float = 1.0,
    damping: float = 0.0,
    drive: Array | float = 0.0,
    bins: int = 40,
) -> Surface:
    """Force drive - m a - c v at every sample; displacement and velocity relative to the base, if it
    moves.
    """
    force = drive - mass * acceleration - damping * velocity
    edges = np.linspace(displacement.min(), displacement.max(), bins + 1)
    which = np.clip(np.searchsorted(edges, displacement, side="right") - 1, 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    full = np.maximum(count, 1)
    mean = np.bincount(which, force, minlength=bins) / full
    spread = np.sqrt(np.maximum(np.bincount(which, force**2, minlength=bins) / full - mean**2, 0.0))
    keep = count >= 3
    centres = 0.5 * (edges[1:] + edges[:-1])
    return Surface(
        displacement, velocity, force, centres[keep], mean[keep], spread[keep], count[keep].astype(np.int64)
    )


@dataclass(frozen=True)
class RestoringForce:
    """Options of the restoring force surface; names are parameters, inputs or channels."""

    name: ClassVar[str] = "surface"

    mass: str = ""  # parameter that is the mass; empty: 1, the force is per mass
    damping: str = ""  # parameter that is the damping to take out; empty: it stays in the force
    drive: str = ""  # measured input that is the driving force
    base: tuple[str, ...] = ()  # inputs that are displacement and velocity of a moving base
    offset: str = ""  # parameter added to the displacement, such as X0
    bins: int = 40

    def start(self, experiment: Experiment, progress: Progress, alone: bool = False) -> Start:
        """Restoring force of a one-degree-of-freedom model from its records, beside the model's own."""
        return _start(self, experiment, progress)


def _start(options: RestoringForce, experiment: Experiment, progress: Progress) -> Start:
    model, runs = experiment.model, experiment.runs
    pairs = derivative_pairs(model)
    if len(pairs) != 1:
        raise ModelError(f"{model.name} is not a single oscillator: the surface needs one x with dx/dt = v.")
    ((v, x),) = pairs.items()
    parts = [
        _surface(model, run, x, v, options, progress.part(i / len(runs), (i + 1) / len(runs)))
        for i, run in enumerate(runs)
    ]
    joined = [np.concatenate(rows) for rows in zip(*parts, strict=True)]
    mass, damping = _value(model, options.mass, 1.0), _value(model, options.damping, 0.0)
    found = restoring_force(joined[0], joined[1], joined[2], mass, damping, joined[3], options.bins)
    unit = model.unit(model.states[x])
    x_label = (
        model.states[x] + (f" + {options.offset}" if options.offset else "") + (f" [{unit}]" if unit else "")
    )
    error = found.spread / np.sqrt(found.count)
    curves = {
        "restoring force": Curve(
            found.centres.tolist(), found.mean.tolist(), (found.mean - found.spread).tolist(),
            (found.mean + found.spread).tolist(), x_label, "force",
        )
    }  # fmt: skip
    figures = {"samples": float(len(found.force)), "spread": float(np.sqrt(np.mean(found.spread**2)))}
    verdict, reasons = "", ["Nothing was judged: there is no force of a model beside the measured one."]
    if model.inputs:
        own = _model_force(model, found.centres, x, v, mass, options)
        curves["model"] = Curve(
            found.centres.tolist(), own.tolist(), own.tolist(), own.tolist(), x_label, "force"
        )
        apart = float(np.sqrt(np.average((own - found.mean) ** 2, weights=found.count)))
        extent = max(float(np.ptp(own)), float(np.ptp(found.mean)))
        figures["rms from the model / range"] = share = apart / extent if extent > 0 else 0.0
        verdict = "misses" if share > SMALL_SHARE else "close"
        reasons = [f"The measured force differs from the model's by {percent(share)} of its range (rms)."]
    return Start(
        "surface",
        model.values(),
        verdict=verdict,
        reasons=[*reasons, *_by_direction(found)],
        warnings=_integrated(experiment, x, v),
        residual=Residual(other=figures),
        finishable=False,
        findings={"standard_error": error.tolist(), "count": found.count.tolist()},
        curves=curves,
        references=REFERENCES,
    )


def _by_direction(found: Surface) -> list[str]:
    """A sentence where the force on the way up and on the way down differ by more than their scatter."""
    up = found.velocity > 0
    halves = [_binned(found, way) for way in (up, ~up)]
    both = np.isfinite(halves[0][0]) & np.isfinite(halves[1][0])
    if np.count_nonzero(both) < _FEWEST_BINS:
        return []
    gap = (halves[0][0] - halves[1][0])[both]
    error = np.hypot(halves[0][1], halves[1][1])[both]
    mean, doubt = float(np.mean(gap)), float(np.sqrt(np.sum(error**2))) / len(gap)
    share = abs(mean) / max(float(np.ptp(found.mean)), 1e-300)
    if abs(mean) < _SURE * doubt or share < _VISIBLE:
        return []
    return [
        f"The force depends on the direction of the motion (on average {mean:.3g} between the way up and the "
        f"way down, {percent(share)} of its range): damping left in it, friction or hysteresis."
    ]


def _binned(found: Surface, chosen: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Mean force of chosen samples around each centre, and its standard error; nan for want of samples."""
    if len(found.centres) < 2:
        return np.full(len(found.centres), np.nan), np.full(len(found.centres), np.nan)
    edges = 0.5 * (found.centres[1:] + found.centres[:-1])
    which = np.searchsorted(edges, found.displacement[chosen])
    count = np.bincount(which, minlength=len(found.centres))
    force, full = found.force[chosen], np.maximum(count, 1)
    mean = np.bincount(which, force, minlength=len(count)) / full
    square = np.bincount(which, force**2, minlength=len(count)) / full
    error = np.sqrt(np.maximum(square - mean**2, 0.0) / full)
    enough = count >= _FEWEST_SAMPLES
    return np.where(enough, mean, np.nan), np.where(enough, error, np.nan)


def _integrated(experiment: Experiment, x: int, v: int) -> list[str]:
    model = experiment.model
    seen = [state_samples(model, run, model.values(), smoothed=True).seen[x] for run in experiment.runs]
    if all(seen):
        return []
    return [
        f"{model.states[x]} was not measured: it is {model.states[v]} integrated, without its mean and its "
        "drift."
    ]


def _value(model: Model, name: str, default: float) -> float:
    return float(model.values()[model.index(name)]) if name else default


def _surface(
    model: Model, m: Run, x: int, v: int, options: RestoringForce, progress: Progress
) -> tuple[Array, Array, Array, Array]:
    progress.report(0.5, "restoring force")
    samples = state_samples(model, m, model.values(), smoothed=True)
    if not (samples.seen[x] or samples.seen[v]):
        raise DataError(f"The record shows neither {model.states[x]} nor {model.states[v]}.")
    X = samples.values
    displacement, velocity = X[x].copy(), X[v].copy()
    if not samples.seen[x]:
        displacement = _without_drift(np.concatenate([[0.0], np.cumsum(0.5 * (X[v][1:] + X[v][:-1]))]) * m.dt)
    acceleration = smooth(X[v], m.dt)[1]
    U = m.inputs.values(m.times)
    for i, name in enumerate(options.base[:2]):
        row = U[_input(model, name)]
        if i == 0:
            displacement -= row
        else:
            velocity -= row
    displacement += _value(model, options.offset, 0.0)
    drive = U[_input(model, options.drive)] if options.drive else np.zeros(len(m.times))
    edge = min(len(m.times) // 20, 50)  # differentiation is poor at the ends
    inside = slice(edge, len(m.times) - edge)
    return displacement[inside], velocity[inside], acceleration[inside], drive[inside]


def _without_drift(row: Array) -> Array:
    """A signal without its mean and its slope."""
    place = np.linspace(-1.0, 1.0, len(row))
    return np.asarray(row - np.polyval(np.polyfit(place, row, 1), place))


def _input(model: Model, name: str) -> int:
    if name not in model.inputs:
        known = ", ".join(model.inputs) or "none"
        raise ModelError(f"{model.name} has no measured input `{name}`; it has {known}.")
    return model.inputs.index(name)


def _model_force(model: Model, heights: Array, x: int, v: int, mass: float, options: RestoringForce) -> Array:
    """The model's force at rest with all inputs zero: -m dv/dt."""
    N = len(heights)
    states = np.zeros((len(model.states), N))
    states[x] = heights - _value(model, options.offset, 0.0)
    rates = np.empty_like(states)
    model.kernels().rhs_many(np.zeros(N), states, np.zeros((len(model.inputs), N)), model.values(), rates)
    return np.asarray(-mass * rates[v])
