"""The vectorisable functions against extended precision."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit, types

from analysis.model import runtime

if np.finfo(np.longdouble).nmant <= 52:
    pytest.skip("long double is no longer than double here", allow_module_level=True)

NAMES = ("sin", "cos", "tan", "exp", "tanh")


@njit(
    types.void(types.float64[::1], types.float64[:, ::1]),
    error_model="numpy",
    fastmath={"contract", "arcp", "nsz"},
)
def _all(x, y):  # type: ignore[no-untyped-def]
    for i in range(x.size):
        y[0, i] = runtime.sin(x[i])
        y[1, i] = runtime.cos(x[i])
        y[2, i] = runtime.tan(x[i])
        y[3, i] = runtime.exp(x[i])
        y[4, i] = runtime.tanh(x[i])


def errors(x: np.ndarray) -> dict[str, float]:
    """Largest error of each function in units of the last place of the true value."""
    y = np.empty((5, x.size))
    _all(x, y)
    result = {}
    for name, row in zip(NAMES, y, strict=True):
        with np.errstate(over="ignore"):
            true = getattr(np, name)(x.astype(np.longdouble))
        unit = np.spacing(np.abs(true.astype(np.float64)))
        result[name] = float(np.max(np.abs(row - true) / unit))
    return result


def test_given_ordinary_arguments_when_evaluated_then_three_units_in_the_last_place(
    rng: np.random.Generator,
) -> None:
    x = np.concatenate([rng.uniform(-size, size, 100_000) for size in (1e-3, 1.0, 20.0, 700.0)])
    assert max(errors(x).values()) < 3


def test_given_long_times_when_evaluated_then_angles_stay_exact(rng: np.random.Generator) -> None:
    for size in (1e5, 1e9, 1e12):
        x = rng.uniform(-size, size, 100_000)
        y = np.empty((5, x.size))
        _all(x, y)
        for row, true in ((y[0], np.sin(x.astype(np.longdouble))), (y[1], np.cos(x.astype(np.longdouble)))):
            assert np.max(np.abs(row - true)) < 4e-16


def test_given_limits_when_evaluated_then_as_the_c_library() -> None:
    x = np.array([math.inf, -math.inf, math.nan, 0.0, 1000.0, -1000.0, 709.78, -745.0, 1e300])
    y = np.empty((5, x.size))
    _all(x, y)
    sine, cosine, tangent, exponential, tanh = y
    for row in (sine, cosine, tangent):
        assert np.all(np.isnan(row[:3]))
    assert np.all(np.abs(y[:2, 3:]) <= 1)
    assert (sine[3], cosine[3], tangent[3], exponential[3], tanh[3]) == (0, 1, 0, 1, 0)
    assert exponential[0] == math.inf and exponential[1] == 0 and np.isnan(exponential[2])
    assert exponential[4] == math.inf and exponential[5] == 0
    assert exponential[6] == pytest.approx(math.exp(709.78), rel=1e-15)
    assert exponential[7] == math.exp(-745.0)
    assert (tanh[0], tanh[1], tanh[4], tanh[5]) == (1, -1, 1, -1) and np.isnan(tanh[2])
