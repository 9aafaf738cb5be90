"""Draws of the bootstrap: records as they might have been, made from the fitted motion and its noise.

``parametric``: fresh white noise of the level that the fit found. ``block``: the fit's own residuals in
blocks, taken anew with replacement (Kuensch, Ann. Statist. 17, 1989, 1217), which keeps noise that is
coloured or not normal as it is. The motion stays the fitted one, so that chaotic records can be drawn too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ShakedownError
from analysis.base.identification import Estimate
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Channel, Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.finish.fitted import Fitted
from analysis.estimate.methods import begin, own_module
from analysis.experiment import Run
from analysis.model import Model

Array = NDArray[np.float64]

KINDS = ("parametric", "block")
LEAST_DRAWS = 20  # below which a standard deviation of draws says little
_FEWEST = 8  # samples whose residuals can be drawn anew


@dataclass(frozen=True, eq=False)
class _Motion:
    """One record as the fit has it."""

    record: Record
    outputs: dict[str, Array]  # those that the record has, as fitted; nan where nothing was fitted
    residuals: Array  # [outputs, N] measured less fitted, enlarged by what the fit took; nan where missing
    sigma: Array  # [outputs]
    inputs: dict[str, Array]  # those that are noisy, as the fit has them
    input_noise: dict[str, float]


@dataclass(frozen=True, eq=False)
class FittedMotion:
    """The fit from which draws are made."""

    motions: tuple[_Motion, ...]

    def draw(self, kind: str, rng: np.random.Generator) -> list[Record]:
        """Records as they might have been; ``kind`` is parametric or block."""
        if kind not in KINDS:
            raise ShakedownError(f"A bootstrap is {' or '.join(KINDS)}, not '{kind}'.")
        return [_drawn(motion, kind, rng) for motion in self.motions]


def fitted_motion(
    model: Model,
    records: Sequence[Record],
    method: str = "auto",
    progress: Progress = SILENT,
    **options: Any,
) -> FittedMotion:
    """Fit the model as ``identify`` does, and keep the fitted motion with its residuals."""
    if own_module(method) is not None:
        raise ShakedownError(f"A bootstrap needs a model of equations, which method {method} has not.")
    begun = begin(model, records, method, progress, options)
    if begun.start.fitted is None and not begun.start.finishable:
        raise DataError("The model does not follow the record: there is no fit to draw from.")
    fitted = begun.start.fitted or fit(
        begun.experiment, begun.start, progress.part(0.3, 1.0), max_iterations=begun.ending.max_iterations
    )
    return FittedMotion(
        tuple(_motion(fitted, number, run) for number, run in enumerate(fitted.experiment.runs))
    )


def with_draws(values: Sequence[float] | Array, stated: Estimate) -> Estimate:
    """The estimate with scatter and 95 % interval of its draws (percentiles of the difference).

    The scatter is half the width that holds 68.3 % of them: one fit in a hundred that ended elsewhere would
    speak for all others in a standard deviation.
    """
    draws = np.asarray(values, dtype=np.float64)
    if len(draws) < LEAST_DRAWS:
        raise DataError(
            f"{len(draws)} draws gave a result: at least {LEAST_DRAWS} are needed for an error bar."
        )
    low, left, right, high = np.quantile(draws, [0.025, 0.1587, 0.8413, 0.975])
    shift = float(np.median(draws)) - stated.value  # the draws' own bias, taken off on both sides
    value = stated.value
    return replace(
        stated,
        stderr=float(right - left) / 2,
        lower=min(float(low) - shift, value),
        upper=max(float(high) - shift, value),
    )


def _motion(fitted: Fitted, number: int, run: Run) -> _Motion:
    names = fitted.experiment.model.outputs
    residuals = np.full(run.outputs.shape, np.nan)
    inputs = run.inputs.values(run.times) if run.inputs.count else np.zeros((0, len(run.times)))
    for piece in fitted.pieces:
        if piece.record != number:
            continue
        residuals[:, piece.first : piece.stop] = piece.residuals
        if len(piece.input_residuals):
            inputs[:, piece.first : piece.stop] -= piece.input_residuals * run.input_noise[:, None]
    clean = run.outputs - residuals
    counted = sum(int(np.isfinite(piece.residuals).sum()) for piece in fitted.pieces)
    grown = math.sqrt(counted / fitted.dof) if fitted.dof > 0 else 1.0
    there = [i for i, name in enumerate(names) if name in run.record]
    noisy = [i for i, level in enumerate(run.input_noise) if level > 0]
    sources = fitted.experiment.model.inputs
    return _Motion(
        run.record,
        {names[i]: clean[i] for i in there},
        residuals[there] * grown,
        np.asarray(fitted.sigma[number][there]),
        {sources[i]: inputs[i] for i in noisy},
        {sources[i]: float(run.input_noise[i]) for i in noisy},
    )


def _drawn(motion: _Motion, kind: str, rng: np.random.Generator) -> Record:
    q, N = motion.residuals.shape
    noise = motion.sigma[:, None] * rng.standard_normal((q, N))
    if kind == "block":
        noise = _blocks(motion.residuals, rng)
    channels = dict(motion.record.channels)
    for i, (name, clean) in enumerate(motion.outputs.items()):
        channels[name] = _with(channels[name], clean + noise[i])
    for name, clean in motion.inputs.items():
        channels[name] = _with(channels[name], clean + motion.input_noise[name] * rng.standard_normal(N))
    return replace(motion.record, channels=channels)


def _with(channel: Channel, samples: Array) -> Channel:
    return replace(channel, data=np.ascontiguousarray(samples))


def _blocks(residuals: Array, rng: np.random.Generator) -> Array:
    """Residuals in blocks from anywhere in the record, the same blocks for all outputs."""
    known = np.isfinite(residuals).any(axis=0)
    pool = residuals[:, known]
    M, N = pool.shape[1], residuals.shape[1]
    if M < _FEWEST:
        raise DataError("Too few samples were fitted to draw their residuals anew.")
    measured = np.isfinite(pool).any(axis=1)
    pool = np.where(np.isfinite(pool), pool, 0.0)
    pool = pool - pool.mean(axis=1, keepdims=True)
    length = max(math.ceil(M ** (1 / 3)), *(min(_correlated(row), M // 4) for row in pool[measured]))
    starts = rng.integers(0, M, -(-N // length))
    places = (starts[:, None] + np.arange(length)).ravel()[:N] % M
    return np.asarray(pool[:, places])


def _correlated(row: Array) -> int:
    """Samples after which a block is as good as independent: four integrated correlation times."""
    z = row - row.mean()
    size = 1 << (2 * len(z) - 1).bit_length()
    power = np.abs(np.fft.rfft(z, size)) ** 2
    acf = np.fft.irfft(power)[: len(z) // 4]
    if not acf[0] > 0:
        return 1
    acf = acf / acf[0]
    positive = acf[: int(np.argmax(acf <= 0)) or len(acf)]
    return max(1, math.ceil(4 * float(np.sum(positive))))
