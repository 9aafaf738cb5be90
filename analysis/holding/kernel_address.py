"""A model's compiled functions by their addresses: handing a function itself to compiled code costs 10 µs.

A loop that decides thousands of times a second looks the addresses up once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.experimental.function_type import _get_jit_address, _get_wrapper_address
from numba.extending import intrinsic
from numpy.typing import NDArray

from analysis.model.kernels import JAC_TYPE, JAC_U_TYPE, OUT_JAC_TYPE, SIGNATURES, Kernels

NAMES = ("jac", "jac_u", "out_jac")


def addresses(kernels: Kernels) -> NDArray[np.int64]:
    """Two addresses for each of NAMES; valid as long as ``kernels`` lives."""
    found = []
    for name in NAMES:
        function, signature = getattr(kernels, name), SIGNATURES[name]
        found += [_get_wrapper_address(function, signature), _get_jit_address(function, signature)]
    return np.array(found, dtype=np.int64)


def _from_addresses(kind: Any) -> Any:
    def typed(typing_context: Any, wrapper: Any, jitted: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.c_addr = builder.inttoptr(args[0], cgutils.voidptr_t)
            made.jit_addr = builder.inttoptr(args[1], cgutils.voidptr_t)
            made.py_addr = cgutils.get_null_value(cgutils.voidptr_t)
            return made._getvalue()

        return kind(types.int64, types.int64), build

    return intrinsic(typed)


jac_at = _from_addresses(JAC_TYPE)
jac_u_at = _from_addresses(JAC_U_TYPE)
out_jac_at = _from_addresses(OUT_JAC_TYPE)
