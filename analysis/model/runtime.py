"""What generated kernels call: memory on the stack, and functions that the compiler can vectorise.

The C library's sin, cos, exp and tanh work on one number at a time. Those below are plain arithmetic without
branches, so a loop over samples uses vector instructions and is six times faster; they are off by three units
in the last place at most, the angles up to 1e13.
The polynomials for sin and cos and their reduction are those of FreeBSD's msun (Sun Microsystems, 1993), the
rational function for tanh is that of the Cephes library (Moshier, 1984).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from analysis.base.compiling import njit

# Unsigned zeros and fused multiply-add may be used, the order of operations may not be changed.
_inlined = njit(error_model="numpy", nogil=True, fastmath={"contract", "nsz"}, forceinline=True)

_TWO_BY_PI = 6.36619772367581382433e-01
_HALF_PI_1 = 1.57079632673412561417e00  # pi/2 in three parts of 33 bits
_HALF_PI_2 = 6.07710050630396597660e-11
_HALF_PI_3 = 2.02226624879595063154e-21
_LOG2_E = 1.44269504088896338700e00
_LN2_1 = 6.93147180369123816490e-01
_LN2_2 = 1.90821492927058770002e-10


@intrinsic(prefer_literal=True)
def stack(typing_context: Any, size: Any) -> Any:
    """Address of ``size`` (a literal number) float64 on the stack of the calling function.

    The compiler knows that such memory overlaps with nothing else, which lets it vectorise.
    """
    count = size.literal_value

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        memory = cgutils.alloca_once(builder, ir.ArrayType(ir.DoubleType(), count))
        memory.align = 64
        return builder.bitcast(memory, ir.DoubleType().as_pointer())

    return types.CPointer(types.float64)(size), generate


@intrinsic
def _power_of_two(typing_context: Any, n: Any) -> Any:
    """2**n for a whole number n from -1022 to 1023 held in a float64: n becomes the exponent bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double, integer = ir.DoubleType(), ir.IntType(64)
        # adding 1.5*2**52 moves the whole number into the lowest bits
        moved = builder.fadd(arguments[0], ir.Constant(double, 6755399441055744.0 + 1023.0))
        bits = builder.shl(builder.bitcast(moved, integer), ir.Constant(integer, 52))
        return builder.bitcast(bits, double)

    return types.float64(types.float64), generate


@_inlined
def _reduced(x: float) -> tuple[float, float]:
    """x = quarter turns (mod 4) * pi/2 + rest."""
    n = np.floor(x * _TWO_BY_PI + 0.5)
    rest = ((x - n * _HALF_PI_1) - n * _HALF_PI_2) - n * _HALF_PI_3
    # beyond 1e15 a float64 no longer resolves the angle; the result stays in [-1, 1]
    rest = 1.0 if rest > 1.0 else rest
    rest = -1.0 if rest < -1.0 else rest
    return n - 4.0 * np.floor(0.25 * n), rest


@_inlined
def _short_sin(r: float) -> float:
    z = r * r
    s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
    return r + (z * r) * (-1.66666666666666324348e-01 + z * s)


@_inlined
def _short_cos(r: float) -> float:
    z = r * r
    c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    c = -1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c)
    c = z * (4.16666666666666019037e-02 + z * c)
    half = 0.5 * z
    w = 1.0 - half
    return w + (((1.0 - w) - half) + z * c)


@_inlined
def sin(x: float) -> float:
    quarter, rest = _reduced(x)
    s, c = _short_sin(rest), _short_cos(rest)
    value = c if (quarter == 1.0) | (quarter == 3.0) else s
    return -value if quarter >= 2.0 else value


@_inlined
def cos(x: float) -> float:
    quarter, rest = _reduced(x)
    s, c = _short_sin(rest), _short_cos(rest)
    value = s if (quarter == 1.0) | (quarter == 3.0) else c
    return -value if (quarter == 1.0) | (quarter == 2.0) else value


@_inlined
def tan(x: float) -> float:
    quarter, rest = _reduced(x)
    s, c = _short_sin(rest), _short_cos(rest)
    turned = (quarter == 1.0) | (quarter == 3.0)
    above = -c if turned else s
    below = s if turned else c
    return above / below


@_inlined
def exp(x: float) -> float:
    x = 720.0 if x > 720.0 else x
    x = -760.0 if x < -760.0 else x
    n = np.floor(x * _LOG2_E + 0.5)
    r = (x - n * _LN2_1) - n * _LN2_2
    e = 2.505210838544172e-08 + r * (2.08767569878681e-09 + r * 1.6059043836821613e-10)
    e = 2.48015873015873e-05 + r * (2.7557319223985893e-06 + r * (2.755731922398589e-07 + r * e))
    e = 8.333333333333333e-03 + r * (1.388888888888889e-03 + r * (1.984126984126984e-04 + r * e))
    e = 0.5 + r * (0.16666666666666666 + r * (4.1666666666666664e-02 + r * e))
    e = 1.0 + (r + (r * r) * e)
    half = np.floor(0.5 * n)  # in two steps: 2**n itself may lie outside the range of normal numbers
    scaled: float = (e * _power_of_two(half)) * _power_of_two(n - half)  # type: ignore[call-arg]
    return scaled


@_inlined
def tanh(x: float) -> float:
    z = x * x
    above = -1.61468768441708447952e3 + z * (-9.92877231001918586564e1 + z * -9.64399179425052238628e-1)
    below = 2.23548839060100448583e3 + z * (1.12811678491632931402e2 + z)
    small = x + (x * z) * (above / (4.84406305325125486048e3 + z * below))
    large = 1.0 - 2.0 / (exp(2.0 * abs(x)) + 1.0)
    return small if abs(x) < 0.625 else (large if x > 0.0 else -large)
