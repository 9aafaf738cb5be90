"""What generated kernels call."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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
