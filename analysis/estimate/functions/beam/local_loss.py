"""A local loss of stiffness: EI(x) exp(-q b(x)), b being 1 over a short stretch and 0 elsewhere.

A crack or a notch is no smooth curve. Its unknowns are the place of its middle and the logarithm of its width
(both of the length), and the logarithm of q; 1 - exp(-q) is the share of the stiffness that is lost.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EDGE = 0.003  # over which an end of the stretch rises, of the length: what the Galerkin form can resolve
NARROWEST, WIDEST = 0.01, 0.4  # of the length
DEEPEST = 4.0  # q: 2 % of the stiffness is left
SIZE = 3


def depth(theta: Array, s: Array) -> Array:
    """q b(s), what the logarithm of the stiffness loses; s = x/L."""
    place, width, q = _read(theta)
    rise, fall = np.tanh((s - place + width / 2) / EDGE), np.tanh((s - place - width / 2) / EDGE)
    return np.asarray(0.5 * q * (rise - fall))


def slopes(theta: Array, s: Array) -> Array:
    """Derivatives of ``depth`` by place, logarithm of width and logarithm of q: [len(s), 3]."""
    place, width, q = _read(theta)
    up = 1.0 / np.cosh(np.clip((s - place + width / 2) / EDGE, -300, 300)) ** 2
    down = 1.0 / np.cosh(np.clip((s - place - width / 2) / EDGE, -300, 300)) ** 2
    half = 0.5 * q / EDGE
    return np.column_stack([-half * (up - down), 0.5 * width * half * (up + down), depth(theta, s)])


def admissible(theta: Array) -> bool:
    place, width, q = _read(theta)
    return bool(0.0 <= place <= 1.0 and NARROWEST <= width <= WIDEST and q <= DEEPEST)


def unknowns(place: float, width: float, loss: float) -> Array:
    """The three unknowns of a stretch; ``loss``: share of the stiffness."""
    return np.array([place, np.log(width), np.log(-np.log1p(-loss))])


def _read(theta: Array) -> tuple[float, float, float]:
    place, width, q = (float(v) for v in theta)
    return place, float(np.exp(min(width, 5.0))), float(np.exp(min(q, 5.0)))
