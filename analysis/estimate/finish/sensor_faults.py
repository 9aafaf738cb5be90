"""A fault of a channel fitted along: offset or drift of a sensor, or a delay between channels.

The score test names the fault (see channels.py). It then becomes an unknown of the fit, as if the options
``offsets=``, ``drifts=`` or ``delays=`` had been given: it has a value and an error, and the
errors of the others are those with it unknown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import SILENT, Progress
from analysis.estimate.finish.channels import DELAY, DRIFT, OFFSET, looks_held
from analysis.estimate.finish.evidence import Fault
from analysis.estimate.finish.fit import optimum_near
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.finish.input_reading import in_the_better_reading
from analysis.estimate.finish.judge import Judgement, judge

if TYPE_CHECKING:
    from analysis.experiment import Experiment

Array = NDArray[np.float64]

_MOST_FAULTS = 4  # an offset and a delay of two channels
_LEAST_DELAY = 0.05  # samples: less may be anything, such as noise on an input that was said to be exact


def with_sensor_faults(
    given: Experiment, fitted: Fitted, judgement: Judgement, progress: Progress = SILENT
) -> tuple[Fitted, Judgement] | None:
    """The fit with the faults that its judgement names as unknowns; None unless nothing speaks against it."""
    faults: list[Fault] = []
    for _ in range(_MOST_FAULTS):
        if judgement.figures.fault is None:
            return None
        faults.append(judgement.figures.fault)
        found = _with_fault(fitted, faults[-1], progress)
        if found is None:
            return None
        fitted = in_the_better_reading(given, found, progress)  # a delay makes inputs look held
        judgement = judge(fitted)
        if judgement.verdict == "fits":
            words = [_words(fitted, judgement, fault) for fault in faults]
            return fitted, replace(judgement, reasons=[*words, *judgement.reasons])
    return None


def _with_fault(fitted: Fitted, fault: Fault, progress: Progress) -> Fitted | None:
    """The fit with one more unknown, or with held inputs where these explain more; None without an end."""
    experiment = fitted.experiment
    conditions, outputs = experiment.conditions, experiment.model.outputs
    # After an input that was recorded late all outputs seem early.
    added = (fault.channel,) if fault.channel in outputs else outputs
    late = fault.kind == DELAY
    known = {OFFSET: conditions.offsets, DELAY: conditions.delays, DRIFT: conditions.drifts}
    if all(name in known[fault.kind] for name in added):
        return None
    known[fault.kind] = tuple(dict.fromkeys((*known[fault.kind], *added)))
    samples = fault.size / fitted.pieces[0].run.dt
    if late and abs(samples) < _LEAST_DELAY:
        return None
    tried = [experiment.with_sensors(known[OFFSET], known[DELAY], known[DRIFT])]
    if (
        late
        and conditions.inputs == "auto"
        and looks_held(fault.channel, samples, experiment.model.inputs, outputs)
    ):
        tried.append(experiment.with_inputs("hold", conditions.denoise))
    found = [f for f in (optimum_near(other, fitted, progress) for other in tried) if f is not None]
    price = np.log(max(fitted.dof, 2))  # of an unknown more (Schwarz)
    return min(found, key=lambda f: f.chi2_at(fitted.sigma) + price * len(f.unknowns), default=None)


def _words(fitted: Fitted, judgement: Judgement, fault: Fault) -> str:
    """What was fitted along, with its size."""
    errors = np.sqrt(np.maximum(np.diag(judgement.covariance), 0.0))
    found = {
        unknown.name: (value, error)
        for unknown, value, error in zip(fitted.unknowns, judgement.estimate, errors, strict=True)
        if unknown.kind == fault.kind
    }
    if fault.kind != DELAY:
        own = [pair for name, pair in found.items() if name.startswith(f"{fault.kind} {fault.channel}")]
        size = ", ".join(f"{value:.3g} ± {error:.1g}" for value, error in own)
        if fault.kind == DRIFT:
            return f"The zero of {fault.channel} drifts by {size} a unit of time, fitted with the parameters."
        return f"The sensor of {fault.channel} has an offset of {size}, fitted with the parameters."
    if not found:
        inputs = " and ".join(fitted.experiment.model.inputs)
        return f"{inputs} seems to act as if held between its samples: it was fitted so."
    interval = fitted.pieces[0].run.dt
    sizes = ", ".join(
        f"{name} {value:.3g} ± {error:.1g} ({value / interval:.2g} samples)"
        for name, (value, error) in found.items()
    )
    return f"{fault.channel} does not keep time with the other channels; fitted with the parameters: {sizes}."
