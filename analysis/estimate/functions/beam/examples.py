"""The example of Banks, Crowley 1983: a simply supported beam under a constant load, solved by sines.

The solution does not use the splines of the method, so it is an independent truth for it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.functions.beam.description import Beam

Array = NDArray[np.float64]
SINES = 200
BANKS = """
name = "Banks, Crowley 1983"
[beam]
length = 1.0
left = "pinned"
right = "pinned"
[stiffness]
guess = 0.15
intervals = 8
[mass]
value = 1.0
[load]
value = 10.0
[sensors]
""" + "\n".join(f"u{i} = {{ at = {i / 10} }}" for i in range(1, 10))


def banks_beam() -> Beam:
    """N = 16, M = 8, flat guess."""
    return Beam.from_toml(BANKS, "banks1983")


def banks_stiffness(x: Array) -> Array:
    return np.asarray(0.15 + 0.10 * np.tanh(5.0 * (x - 0.5)))


def banks_record(times: Array, noise: float = 0.0, seed: int = 0) -> Record:
    """Displacements at x = 0.1 to 0.9 from rest; ``noise`` in parts of the largest displacement."""
    nodes, weights = np.polynomial.legendre.leggauss(800)
    x, k = 0.5 * (nodes + 1.0), np.arange(1, SINES + 1) * np.pi
    sines = np.sqrt(2.0) * np.sin(np.outer(k, x))
    bent = k[:, None] ** 2 * sines
    squared, shapes = np.linalg.eigh((bent * (0.5 * weights * banks_stiffness(x))) @ bent.T)
    amplitude = shapes.T @ (10.0 * sines @ (0.5 * weights)) / squared
    modal = amplitude[:, None] * (1.0 - np.cos(np.outer(np.sqrt(squared), times)))
    u = np.sqrt(2.0) * np.sin(np.outer(np.arange(1, 10) / 10.0, k)) @ shapes @ modal
    u = u + noise * np.abs(u).max() * np.random.default_rng(seed).standard_normal(u.shape)
    return Record.from_arrays(1.0 / float(times[1]), {f"u{i + 1}": row for i, row in enumerate(u)})


def banks_error(result: Identification) -> float:
    """E, the L2 norm of the stiffness error."""
    curve = result.curves["EI"]
    x = np.array(curve.x)
    return float(np.sqrt(np.trapezoid((np.array(curve.y) - banks_stiffness(x)) ** 2, x)))


def banks_coverage(result: Identification) -> float:
    """Share of the beam where the truth lies inside the band."""
    curve = result.curves["EI"]
    truth = banks_stiffness(np.array(curve.x))
    return float(np.mean((np.array(curve.lower) <= truth) & (truth <= np.array(curve.upper))))
