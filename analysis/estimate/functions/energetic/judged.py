"""Can any such function follow the motion? The verdict on c(t) and H, and what else the force depends on.

What the weak form of the equation leaves is held against forces that no H(x) is: of the velocity, of the
inputs once more (a wrong mass or scale), and of the history of the displacement (hysteresis). The last are
stop operators, z' = x' while |z| < r, of several reaches r (Prandtl 1928, Ishlinskii 1944).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Curve, Estimate, Identification
from analysis.estimate.functions.energetic.recovery import Recovery
from analysis.estimate.functions.energetic.start import Motion, weak_residuals
from analysis.estimate.functions.judgement import Verdict, judge_left

Array = NDArray[np.float64]

_REACHES = (0.05, 0.15, 0.3, 0.5, 0.7)  # of the stop operators, of half the range
_RARE = 1e-6  # probability below which a dependence is named
_SHARE = 0.1  # of what is left (squares) that a dependence must explain


@dataclass(frozen=True)
class Dependence:
    """Forces of one kind, and how surely what is left depends on them."""

    words: str
    probability: float
    share: float  # of the squares of what is left


def judged(result: Identification, found: Recovery) -> Identification:
    """The result with its verdict; bands are widened where something but noise is left."""
    if not found.left:
        words = "Without the output error (refine) nothing tells whether the functions fit."
        return replace(result, verdict="cannot tell", reasons=[words])
    plain = judge_left(found.left, found.fit.converged)
    verdict = plain
    if plain.verdict in ("close", "misses"):
        named = _dependences(found)
        history = [d.words for d in named if "history" in d.words]
        verdict = judge_left(found.left, found.fit.converged, history)
        others = [d.words for d in named if d.words not in history]
        verdict = replace(verdict, reasons=[*verdict.reasons, *others])
    return replace(
        verdict.written(result),
        curves={name: _widened(curve, verdict) for name, curve in result.curves.items()},
        parameters={name: _broader(e, verdict) for name, e in result.parameters.items()},
    )


def _widened(curve: Curve, verdict: Verdict) -> Curve:
    y, low, high = (np.array(row) for row in (curve.y, curve.lower, curve.upper))
    factor = verdict.widening
    return replace(curve, lower=(y + factor * (low - y)).tolist(), upper=(y + factor * (high - y)).tolist())


def _broader(estimate: Estimate, verdict: Verdict) -> Estimate:
    ideal = estimate.stderr
    return replace(
        Estimate.normal(estimate.value, ideal * verdict.widening, estimate.unit), stderr_ideal=ideal
    )


def _dependences(found: Recovery) -> list[Dependence]:
    """What the remaining force depends on, the surest first; history beyond what the velocity explains."""
    own, left = weak_residuals(found.unknowns, found.motions, found.fit.theta, found.window)
    speed = [_along(found, _of_velocity(m), m) for m in found.motions]
    drive = [_along(found, m.known[None], m) for m in found.motions]
    past = [_along(found, _stops(m.smooth_x), m) for m in found.motions]
    kinds = [
        ("depends on the velocity: damping is missing, or H(x,v) is wanted", None, speed),
        ("follows the known forces: their scale, or the mass, is wrong", None, drive),
        (
            "depends on the direction and the history of the motion, which no function of x (or of x and v) "
            "can give: hysteresis",
            speed,
            past,
        ),
    ]
    out = []
    for words, given, columns in kinds:
        base = own if given is None else [np.hstack(pair) for pair in zip(own, given, strict=True)]
        probability, share = _explained(base, columns, left)
        if probability < _RARE and share > _SHARE:
            said = f"The force that is left {words} ({100 * share:.0f} % of it)."
            out.append(Dependence(said, probability, share))
    return sorted(out, key=lambda d: -d.share)


def _along(found: Recovery, rows: Array, motion: Motion) -> Array:
    """Forces [K, N] as the weak form sees them: [windows, K], freed of the noise's correlation."""
    from analysis.estimate.functions.energetic.start import weak_columns

    return weak_columns(motion, rows, found.window)


def _of_velocity(motion: Motion) -> Array:
    v = motion.smooth_v / np.std(motion.smooth_v)
    return np.array([v, v * np.abs(v), v**3, np.tanh(20 * v)])


def _stops(x: Array) -> Array:
    """Stop operators of the displacement, [reaches, N]."""
    half = 0.5 * float(np.ptp(x))
    reaches = half * np.array(_REACHES)
    out = np.zeros((len(reaches), len(x)))
    z = np.zeros(len(reaches))
    for n, step in enumerate(np.diff(x), start=1):
        z = np.clip(z + step, -reaches, reaches)
        out[:, n] = z
    return out / reaches[:, None]


def _explained(base: list[Array], columns: list[Array], left: list[Array]) -> tuple[float, float]:
    """Probability of chance, and share of the squares, that columns explain beyond a base (F test)."""
    from scipy.special import fdtrc

    inner, outer, row = np.concatenate(base), np.concatenate(columns), np.concatenate(left)
    q, _ = np.linalg.qr(inner)
    row = row - q @ (q.T @ row)
    outer = outer - q @ (q.T @ outer)
    solved = np.linalg.lstsq(outer, row, rcond=1e-8)[0]
    total, gained = float(row @ row), float((outer @ solved) @ row)
    freedom = max(len(row) - inner.shape[1] - outer.shape[1], 1)
    statistic = gained / outer.shape[1] / max((total - gained) / freedom, 1e-300)
    return float(fdtrc(outer.shape[1], freedom, statistic)), gained / max(total, 1e-300)
