"""Which terms would explain what a fit leaves? The score test over many candidates, and over the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.honest import noise_processes
from analysis.estimate.finish.linearised import Linearisation, Regression
from analysis.estimate.finish.score import (
    Added,
    Missing,
    Scores,
    force_columns,
    output_columns,
    scores,
)
from analysis.estimate.finish.terms import Term, candidate_terms

if TYPE_CHECKING:
    from analysis.estimate.finish.fitted import Fitted
    from analysis.model import Model

Array = NDArray[np.float64]

_ROOM = 20_000_000  # numbers held at a time for columns and their sweeps
_LAGS = 20  # of the inputs against which the residuals are held


@dataclass(frozen=True, eq=False)
class Along:
    """A fitted motion: what terms are evaluated on."""

    model: Model
    linearisation: Linearisation

    @property
    def rates(self) -> Array:
        """Right-hand sides [n, N] along the motion."""
        s = self.linearisation.stretch
        found = np.empty_like(s.states)
        k = len(self.model.parameters)
        self.model.kernels().rhs_many(s.times, s.states, self.inputs(s.times), s.values[:k].copy(), found)
        return found

    def inputs(self, times: Array) -> Array:
        given = self.linearisation.stretch.inputs
        return np.zeros((0, len(times))) if given is None else given.values(times)


def missing_terms(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> list[Missing]:
    """Every candidate term of the equations."""
    model = fitted.experiment.model
    motions = [Along(model, part) for part in linear]
    found: list[Missing] = []
    tried = candidate_terms(model, state_sizes(linear))
    terms = [t for t in tried if not (t.of_input and fitted.inputs_estimated)]
    together, apart = [t for t in terms if not t.apart], [t for t in terms if t.apart]
    for group in (*_groups(together, linear), *_groups(apart, linear)):
        scored = tested(fitted, regressions, [force_of(motion, group) for motion in motions])
        found += [_missing_force(model, motions, term, j, scored) for j, term in enumerate(group)]
    return found


def state_sizes(linear: Sequence[Linearisation]) -> Array:
    """Rms [n] of the states along the motion."""
    return np.asarray(np.sqrt(np.mean(np.hstack([part.stretch.states for part in linear]) ** 2, axis=1)))


def force_of(motion: Along, terms: Sequence[Term]) -> Array:
    """Columns [q, N, T] of terms added to the equations along a motion."""
    return force_columns(motion.linearisation, terms, motion.rates, motion.inputs)


def tested(fitted: Fitted, regressions: Sequence[Regression], columns: Sequence[Array]) -> Scores:
    """Scores of the columns, with the noise as it would be if they were all there."""
    added = [Added(r, c) for r, c in zip(regressions, columns, strict=True)]
    used = len(fitted.estimate) + len(fitted.pieces) * len(fitted.pieces[0].states)
    return scores(added, used, noise_processes)


def _groups(terms: Sequence[Term], linear: Sequence[Linearisation]) -> list[Sequence[Term]]:
    """The terms in groups whose columns fit into memory together."""
    samples = sum(part.N for part in linear)
    longest = max(part.N for part in linear)
    each = samples * 3 * linear[0].q + longest * (2 * linear[0].n + linear[0].q)
    size = max(int(_ROOM / each), 1)
    return [terms[i : i + size] for i in range(0, len(terms), size)]


def _missing_force(model: Model, motions: Sequence[Along], term: Term, j: int, scored: Scores) -> Missing:
    coefficients, errors = scored.coefficients()
    own, whole = 0.0, 0.0
    for motion in motions:
        s = motion.linearisation.stretch
        own += float(np.sum(term.values(s.states, motion.inputs(s.times)) ** 2))
        whole += float(np.sum(motion.rates[term.equation] ** 2))
    share = abs(coefficients[j]) * np.sqrt(own / whole) if whole > 0 else 0.0
    place = f"d{model.states[term.equation]}/dt"
    shift = tuple(float(change) for change in -scored.along[:, j] * coefficients[j])
    return Missing(
        term.name,
        place,
        float(scored.t_values()[j]),
        float(coefficients[j]),
        float(errors[j]),
        float(share),
        term.common,
        shift=shift,
        text=term.text,
        scale=term.scale,
        gain=float(scored.gains()[j]),
    )


def input_correlation(
    fitted: Fitted, linear: Sequence[Linearisation], regressions: Sequence[Regression]
) -> float:
    """Probability that chance alone relates the residuals of some output to the inputs of the past.

    The residuals are regressed on 20 earlier values of each input, spread over its correlation time; what
    the unknowns can imitate is taken out of them first. 1 without inputs, and where their own noise is part
    of the residuals.
    """
    from scipy.special import chdtrc

    if fitted.inputs_estimated:
        return 1.0
    lowest, tests = 1.0, 0
    for channel in range(len(fitted.experiment.model.inputs)):
        spacing = _spacing(linear[0], channel)
        for output in range(linear[0].q):
            columns = [output_columns(p, _delayed(p, channel, output, spacing)) for p in linear]
            statistic, freedom = tested(fitted, regressions, columns).joint()
            if freedom:
                tests += 1
                lowest = min(lowest, float(chdtrc(freedom, statistic)))
    return min(1.0, lowest * max(tests, 1))


def _spacing(part: Linearisation, channel: int) -> int:
    """Samples between the lags: a tenth of where the input's autocorrelation first crosses zero."""
    assert part.stretch.inputs is not None
    u = part.stretch.inputs.values(part.stretch.times)[channel]
    u = u - u.mean()
    wave = np.fft.rfft(u, 2 * len(u))
    correlation = np.fft.irfft(wave * wave.conj())[: len(u) // 4]
    below = np.flatnonzero(correlation <= 0)
    return max(int(below[0] // 10), 1) if len(below) else 1


def _delayed(part: Linearisation, channel: int, output: int, spacing: int) -> Array:
    """Earlier values of an input as shifts [q, N, lags] of one output."""
    assert part.stretch.inputs is not None
    u = part.stretch.inputs.values(part.stretch.times)[channel]
    shifts = np.zeros((part.q, part.N, _LAGS))
    scale = float(part.stretch.sigma[output]) / (float(np.std(u)) or 1.0)
    for j in range(_LAGS):
        lag = j * spacing
        if lag < part.N:
            shifts[output, lag:, j] = scale * (u[: part.N - lag] - u.mean())
    return shifts
