"""Are the residuals noise? The model's best motion through each stretch of the record, and what it leaves.

Within stretches of a few periods the states are free and the equations hold exactly (the maximum-likelihood
path with the parameters as given). Of a right model only the sensors' noise is left: white, uncorrelated with
the input, and as large as the noise that the high-order differences of the record show without any model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.progress import Progress
from analysis.base.words import rounded
from analysis.estimate.finish.path_engine import segments_of
from analysis.estimate.path.estimate import estimate_path
from analysis.estimate.path.segment import PathSegment
from analysis.estimate.start import Start
from analysis.experiment import Experiment
from analysis.signal import whiteness
from analysis.validation.check import Check, Panel, Status, Trace, graded, impossible
from analysis.validation.subject import Subject

Array = NDArray[np.float64]

NAME, TITLE = "residuals", "Residuals"
_PERIODS = 5.0  # of the drive (or turns) in a stretch
_MOST = 6000  # samples that are looked at
_ROUNDS, _STEPS = 3, 15
_EXACT = 1e-6  # miss of the equations, of the span, that counts as none
_LAGS = 40
_LEVEL = 1e-3  # probability below which white noise is ruled out
_SMALL, _LARGE = 0.005, 0.01  # systematic part of the residuals, of the spread: unimportant, unacceptable
# What the dashed bounds mean: at _LEVEL, over all the lags drawn.
WHITE = "white noise stays inside at all lags, but for 1 record in 1000"
UNRELATED = "what is unrelated to the input stays inside at all lags, but for 1 record in 1000"
_KNOWN = 1.2  # times the noise of the differences: white residuals as large as that are noise
_ANOTHER = 1.25  # times the share that an identification says it misses: another record misses more or less


def check_residuals(subject: Subject, progress: Progress, stated: float = 0.0) -> Check:
    """Size, autocorrelation and cross-correlation with the input of what the model leaves unexplained.

    ``stated``: the share of the spread that the model is known to miss; so much is doubtful, not a failure.
    """
    segments = _stretches(subject)
    if not segments:
        return impossible(NAME, TITLE, "The record is too short for residuals.")
    try:
        residuals = _residuals(subject, segments, progress)
    except (ShakedownError, np.linalg.LinAlgError) as error:
        return Check(NAME, TITLE, "failed", f"No motion of the model follows the record: {error}")
    size = np.sqrt(np.mean(np.concatenate(residuals, axis=1) ** 2, axis=1))
    systematic = np.sqrt(np.maximum(size**2 - subject.noise**2, 0.0)) / subject.spread
    worst = int(np.argmax(systematic))
    rows = [r[worst] for r in residuals]
    lags, correlation, band = autocorrelation(rows)
    probability = ljung_box(rows, lags)
    noise = float(subject.noise[worst] / subject.spread[worst])  # what the sensor hides cannot be asked for
    inside = bool(np.all(np.abs(correlation) <= band))  # what is drawn is what is tested
    white = probability > _LEVEL and inside
    chance = white and size[worst] <= _KNOWN * subject.noise[worst]
    limit = max(_LARGE, noise, _ANOTHER * stated)
    status: Status = "passed" if chance else graded(float(systematic[worst]), _SMALL, limit)
    name = subject.model.outputs[subject.shown[worst]]
    numbers = {
        "rms": float(size[worst]),
        "noise": float(subject.noise[worst]),
        "systematic_of_spread": float(systematic[worst]),
        "ljung_box_probability": probability,
    }
    panels = [_panel("Autocorrelation", WHITE, lags * subject.dt, correlation, band, subject, 1)]
    if subject.data.inputs.count:
        reach, cross, wide = _cross(subject, segments, rows, correlation)
        numbers["largest_cross_correlation"] = float(np.max(np.abs(cross)))
        title = "Correlation with the input"
        panels.append(_panel(title, UNRELATED, reach * subject.dt, cross, wide, subject, 0))
    outside = int(np.sum(np.abs(correlation) > band))
    words = _words(name, numbers, len(lags), outside, white, status)
    if subject.conditions.inputs == "hold":
        words += " The inputs were read as held between their samples, which the record follows better."
    return Check(NAME, TITLE, status, words, numbers, (), tuple(panels))


def left_over(subject: Subject, progress: Progress) -> float:
    """Mean square over the noise of what the model's best motion leaves, worst output; nan where there is
    none."""
    segments = _stretches(subject)
    if not segments:
        return float("nan")
    try:
        residuals = np.concatenate(_residuals(subject, segments, progress), axis=1)
    except (ShakedownError, np.linalg.LinAlgError):
        return float("nan")
    return float(
        np.max(np.mean(residuals**2, axis=1) / np.maximum(subject.noise, 1e-4 * subject.spread) ** 2)
    )


def _words(name: str, numbers: dict[str, float], lags: int, outside: int, white: bool, status: str) -> str:
    """What was found; both tests for white noise are told, as either of them can rule it out."""
    beyond = f"{outside or 'none'} of {lags} lags outside the bounds drawn"
    test = f"Ljung and Box, probability {numbers['ljung_box_probability']:.2g}; {beyond}"
    colour = f"white noise ({test})" if white else f"not white ({test})"
    rms, noise, part = numbers["rms"], numbers["noise"], 100 * numbers["systematic_of_spread"]
    words = (
        f"The best motion of the model leaves {rms:.2g} rms in {name}, the sensor's own noise being "
        f"{noise:.2g}: {colour}, systematic part {rounded(part, 2)} % of the spread"
    )
    ending = {
        "passed": "." if white else ", too little to matter.",
        "doubtful": "; the model lacks something small.",
    }
    return words + ending.get(status, "; the model lacks something.")


def _stretches(subject: Subject) -> list[PathSegment]:
    """Pieces of the record, each with a path of its own, evenly spread over it."""
    try:
        experiment = Experiment(subject.model, subject.record, subject.conditions)
        start = Start("validate", experiment.guesses(), [subject.states])
        whole, _ = segments_of(experiment, start)
    except ShakedownError:
        return []
    length = int(np.clip(round(_PERIODS * subject.base / subject.dt), 40, 2000))
    pieces = []
    for s in whole:
        for a in range(0, len(s.times) - length + 1, length):
            part = slice(a, a + length)
            outputs, states = (np.ascontiguousarray(rows[:, part]) for rows in (s.outputs, s.states))
            times = np.ascontiguousarray(s.times[part])
            pieces.append(replace(s, times=times, outputs=outputs, states=states, variants=()))
    most = max(_MOST // length, 1)
    chosen: Any = (
        np.unique(np.linspace(0, len(pieces) - 1, min(most, len(pieces))).astype(int)) if pieces else []
    )
    return [pieces[int(i)] for i in chosen]


def _residuals(subject: Subject, segments: list[PathSegment], progress: Progress) -> list[Array]:
    """Measured minus model [shown, N] in each stretch; the search is repeated until the equations hold."""
    level = np.full(len(subject.model.outputs), np.nan)
    level[subject.shown] = np.maximum(subject.noise, 1e-4 * subject.spread)
    for turn in range(_ROUNDS):
        part = progress.part(turn / _ROUNDS, (turn + 1) / _ROUNDS)
        found = estimate_path(
            subject.model.kernels(), segments, subject.model.values(), [], sigma=level, max_iterations=_STEPS,
            progress=part,
        )  # fmt: skip
        if found.defect < _EXACT:
            break
        segments = [replace(s, states=z) for s, z in zip(segments, found.states, strict=True)]
    return [np.nan_to_num(r[subject.shown]) for r in found.residuals]


def autocorrelation(rows: list[Array]) -> tuple[Array, Array, float]:
    """Lags from 1 on, autocorrelation over all stretches, and the bound that white noise keeps at all lags.

    The bound is passed somewhere with the probability at which white noise is ruled out (Sidak 1967).
    """
    count = min(_LAGS, min(len(r) for r in rows) // 3)
    values, _ = whiteness.autocorrelation(rows, count)
    return np.arange(1.0, count + 1), values, _bound(rows, count)


def _bound(rows: list[Array], count: int) -> float:
    """What the correlations of white noise at so many lags stay below, all of them (Sidak 1967)."""
    from scipy.special import ndtri

    each = 1.0 - (1.0 - _LEVEL) ** (1.0 / max(count, 1))  # probability at a single lag
    return float(-ndtri(each / 2) / np.sqrt(sum(len(r) for r in rows)))


def ljung_box(rows: list[Array], lags: Array) -> float:
    """Probability that white noise is as correlated as these residuals (Ljung and Box 1978)."""
    correlation, pairs = whiteness.autocorrelation(rows, len(lags))
    return whiteness.ljung_box(correlation, pairs, sum(len(r) for r in rows))


def _cross(
    subject: Subject, segments: list[PathSegment], rows: list[Array], own: Array
) -> tuple[Array, Array, float]:
    """Correlation of the residuals with the (first) input by lag, and the bound that noise keeps.

    Both are coloured, so the band is widened by their autocorrelations (Bartlett 1946).
    """
    inputs = [subject.data.inputs.values(s.times)[0] for s in segments]
    inputs = [u - u.mean() for u in inputs]
    count = len(own)
    scale = np.sqrt(sum(float(r @ r) for r in rows) * sum(float(u @ u) for u in inputs)) or 1.0
    lags = np.arange(-count, count + 1)

    def at(k: int) -> float:
        pairs = (
            (r[k:], u[: len(u) - k]) if k >= 0 else (r[:k], u[-k:]) for r, u in zip(rows, inputs, strict=True)
        )
        return sum(float(a @ b) for a, b in pairs) / scale

    _, drive, _ = autocorrelation(inputs)
    width = min(len(drive), len(own))
    wide = _bound(inputs, len(lags)) * np.sqrt(
        max(1.0, 1.0 + 2.0 * float(np.sum(own[:width] * drive[:width])))
    )
    return lags.astype(np.float64), np.array([at(int(k)) for k in lags]), float(wide)


def _panel(title: str, meaning: str, x: Array, y: Array, band: float, subject: Subject, first: int) -> Panel:
    edges = np.array([x[0] if not first else 0.0, x[-1]])
    return Panel(
        title,
        f"lag [{subject.unit}]",
        "correlation [–]",
        (
            Trace("residuals", x, y, "model"),
            Trace(meaning, edges, np.full(2, band), "limit"),
            Trace("", edges, np.full(2, -band), "limit"),
        ),
    )
