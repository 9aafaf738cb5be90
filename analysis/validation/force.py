"""The restoring force that the record shows beside the model's (Masri and Caughey 1979), for one oscillator.

Newton's law gives the force at every sample from the measured acceleration; the model's damping and drive are
taken out of it, its stiffness is not used. Binned over the displacement it stands beside the model's curve.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.words import rounded
from analysis.estimate.functions.surface import restoring_force
from analysis.experiment.states import scaled_derivatives
from analysis.model import Model
from analysis.signal.smoothing import smooth
from analysis.validation.check import Check, Panel, Trace, graded, impossible
from analysis.validation.drive import depends_on_time, opened
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "force", "Restoring force"
_NEAR, _FAR = 0.05, 0.15  # rms between the curves, of the force's range
_BINS = 40
_NONE = 0.01  # range of the model's force at rest over that of the forces in the motion: there is no spring


def check_force(subject: Subject) -> Check:
    """Binned force of the record against the model's, over the displacement."""
    model = subject.model
    pairs = scaled_derivatives(model)
    if len(pairs) != 1 or len(model.states) != 2:
        return impossible(NAME, TITLE, f"{model.name} is not a single oscillator with dx/dt = v.")
    still = opened(model)
    if depends_on_time(still):
        return impossible(
            NAME, TITLE, "The drive stands in the equations, not under [inputs]: it cannot be taken out."
        )
    ((v, (x, factor)),) = pairs.items()  # dx/dt = factor v: the force is factor dv/dt
    X = subject.states
    edge = min(X.shape[1] // 20, 50)  # differentiation is poor at the ends
    inside = slice(edge, X.shape[1] - edge)
    acceleration = smooth(X[v], subject.dt)[1]
    driven = _rates(model, subject.times, X, subject.data.inputs.values(subject.data.times))[v]
    known = factor * (driven + _own_force(still, X[x], x, v))[inside]
    found = restoring_force(
        X[x][inside], factor * X[v][inside], factor * acceleration[inside], drive=known, bins=_BINS
    )
    own = factor * _own_force(still, found.centres, x, v)
    if float(np.ptp(own)) < _NONE * float(np.ptp(factor * driven[inside])):
        return impossible(NAME, TITLE, f"{model.name} has no force that depends on {model.states[x]}.")
    extent = float(np.ptp(found.mean)) or 1.0
    miss = float(np.sqrt(np.average((own - found.mean) ** 2, weights=found.count))) / extent
    status = graded(miss, _NEAR, _FAR)
    off = f"{rounded(100 * miss, 2)} %"
    words = f"The restoring force of the record differs from the model's by {off} of its range."
    name = model.states[x]
    panel = Panel(
        "Restoring force",
        subject.label(name),
        "force per mass",
        (
            Trace("measured", found.centres, found.mean, "measured", points=True),
            Trace("model", found.centres, own, "model"),
            Trace("spread of the samples", found.centres, found.mean - found.spread, "limit"),
            Trace("", found.centres, found.mean + found.spread, "limit"),
        ),
    )
    return Check(NAME, TITLE, status, words, {"miss_of_range": miss}, (), (panel,))


def _rates(model: Model, times: Array, states: Array, inputs: Array) -> Array:
    rates = np.empty_like(states)
    model.kernels().rhs_many(times, np.ascontiguousarray(states), inputs, model.values(), rates)
    return rates


def _own_force(still: Model, displacement: Array, x: int, v: int) -> Array:
    """The model's force at rest without drive: -dv/dt at v = 0."""
    states = np.zeros((2, len(displacement)))
    states[x] = displacement
    none = np.zeros((len(still.inputs), len(displacement)))
    return -_rates(still, np.zeros(len(displacement)), states, none)[v]
