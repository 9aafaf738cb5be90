"""Maximum likelihood over the whole path: the states at all samples and the parameters, estimated together.

Minimise the noise-weighted distance between measurements y_k and outputs g(z_k, p) subject to the equations
of motion z_{k+1} = Phi(z_k; p), Phi the model's flow over one sample interval: multiple shooting with every
sample a node. Errors in all variables are thereby accounted for, chaos is no obstacle (the path is free and
every interval short), and the inverse Hessian is the Cramer-Rao bound of the parameters for white noise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.progress import SILENT, Progress
from analysis.estimate.identifiability import pseudo_inverse
from analysis.estimate.path.details import segment_details
from analysis.estimate.path.input_noise import covariance_from_inputs, input_noise_matters
from analysis.estimate.path.iteration import Outcome, iterate
from analysis.estimate.path.problem import PathProblem
from analysis.estimate.path.result import PathEstimate
from analysis.estimate.path.segment import PathSegment
from analysis.estimate.path.substeps import choose_substeps
from analysis.estimate.unknowns import Unknowns
from analysis.experiment.noise_sharing import NoiseSharing

Array = NDArray[np.float64]


def estimate_path(
    kernels: Any,
    segments: Sequence[PathSegment],
    values: Array,
    free: Sequence[int],
    *,
    local: Sequence[int] = (),
    absent: Collection[tuple[int, int]] = (),
    lower: Array | None = None,
    upper: Array | None = None,
    sigma: Array | None = None,
    sensors: Array | None = None,
    sharing: NoiseSharing | None = None,
    penalty: Array | None = None,
    steps: int = 0,
    max_iterations: int = 60,
    details: bool = False,
    progress: Progress = SILENT,
) -> PathEstimate:
    """States at all samples and the free parameters by maximum likelihood; cost linear in the samples.

    kernels         ``rhs``, ``jac``, ``out``, ``out_jac`` of the model (n states, k parameters, q outputs)
    segments        stretches of data, each with a start for its states (measured, smoothed or simulated)
    values          parameters to start from: [k], or [records, k]
    free            what to estimate: i < k a parameter, k + i the offset of output i, k + q + i its delay,
                    k + 2q + i its drift, in y_i(t) = g_i(x(t - delay_i)) + offset_i + drift_i t
    local           those of ``free`` that differ from record to record
    absent          (index, record) of those that are known in that record all the same
    lower, upper    bounds of the k parameters (default none)
    sigma           noise standard deviation of each output, [q] or [records, q]; nan or None: estimated from
                    the residuals
    sharing         which records have one level where it is estimated (default: all)
    sensors         offsets, delays and drifts of the outputs to start from, [2q] or [3q], or by record
                    (default none)
    penalty         [k, k] of squares of parameters that all records share, added to twice the misfit (default
                    none); the information stays that of the data
    steps           sub-steps of a sample interval for the flow, from a fit close by (default: not known)
    details         also how the path follows the unknowns (:class:`PathDetails`)

    Noise of the inputs' samples (``PathSegment.input_noise``) is first left aside. If it then turns out to
    move a parameter beside its standard error, the true inputs at all samples become unknowns, too, with
    their measured samples as data.

    At first the equations may be missed as much as the start misses them; this slack is reduced from step to
    step until they hold exactly. So a poor start (parameters 50 % off, raw noisy samples as states) will do.
    """
    records = max((segment.record for segment in segments), default=0) + 1
    shared = Unknowns.by_record([int(j) for j in free], set(local), records)
    unknowns = Unknowns([item for item in shared.items if item not in set(absent)], records)
    problem = PathProblem(kernels, list(segments), values, unknowns, lower, upper, sigma, sensors, sharing)
    if penalty is not None:
        problem.penalty = _of_unknowns(penalty, unknowns)
    choose_substeps(problem, steps)
    noisy = any(s.noise_of_inputs.any() for s in problem.segments)
    found = iterate(problem, max_iterations, progress.part(0.0, 0.5 if noisy else 1.0))
    if noisy and (not found.converged or input_noise_matters(problem)):
        problem.free_inputs()
        found = found.followed_by(iterate(problem, max_iterations, progress.part(0.5, 1.0)))
    return _estimate(problem, found, details)


def _of_unknowns(penalty: Array, unknowns: Unknowns) -> Array:
    """A penalty on parameters, on the unknowns that all records share."""
    own = np.zeros((len(unknowns), len(unknowns)))
    shared = [i for i, (index, record) in enumerate(unknowns.items) if record < 0 and index < len(penalty)]
    index = [unknowns.items[i][0] for i in shared]
    own[np.ix_(shared, shared)] = penalty[np.ix_(index, index)]
    return own


def _estimate(problem: PathProblem, found: Outcome, details: bool) -> PathEstimate:
    return PathEstimate(
        values=problem.values,
        unknowns=problem.unknowns.items,
        estimate=problem.current,
        covariance=pseudo_inverse(found.information),
        information=found.information,
        input_covariance=covariance_from_inputs(problem),
        states=problem.paths,
        residuals=[
            np.ascontiguousarray((w.R * problem.noise.sigma[s.record]).T)
            for s, w in zip(problem.segments, problem.work, strict=True)
        ],
        sigma=problem.noise.sigma,
        chi2=2 * problem.cost([w.R for w in problem.work], problem.input_errors),
        dof=problem.dof,
        converged=found.converged,
        iterations=len(found.history),
        evaluations=problem.evaluations,
        steps=problem.fine,
        defect=max(float(np.max(np.abs(w.C) / problem.scale)) for w in problem.work),
        history=found.history,
        message=found.message,
        details=segment_details(problem) if details else (),
    )
