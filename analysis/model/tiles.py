"""Kernels over many samples: a loop over tiles, compiled once for all models.

A model's own code computes one tile: an array whose rows of 64 numbers are time, what differs from sample to
sample, then the results. The compiler turns its loop into vector instructions, for it sees that rows never
overlap. To fill a tile and to take the results out of it is the same for every model, and is not compiled
again with each: that took five times as long as the equations themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numpy.typing import NDArray

from analysis.base.compiling import njit

Array = NDArray[np.float64]

TILE = 64  # samples that are worked on at once; as in code.py, which does not need the compiler

_VECTOR = types.float64[::1]
_MATRIX = types.float64[:, ::1]
_ROWS = types.int64[::1]
TILE_SIGNATURE = types.void(_VECTOR, _VECTOR)  # tile, parameters
_OUTPUT = (_MATRIX, _ROWS)  # an array and, for each result in turn, the row where it belongs

_compiled = njit(nogil=True, cache=True)


@intrinsic
def _copy(typing_context: Any, target: Any, at: Any, source: Any, origin: Any) -> Any:
    """Copy TILE numbers between contiguous arrays, whose places are counted in order: a loop over indices,
    which may be negative in Python, would not become vector instructions."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(array: int, offset: int) -> Any:
            record = context.make_array(signature.args[array])(context, builder, arguments[array])
            return builder.gep(record.data, [arguments[offset]])

        size = ir.Constant(ir.IntType(64), TILE)
        cgutils.raw_memcpy(builder, place(0, 1), place(2, 3), size, 8)
        return context.get_dummy_value()

    return types.void(target, types.int64, source, types.int64), generate


@intrinsic
def _compute(typing_context: Any, address: Any, tile: Any, p: Any) -> Any:
    """Run the machine code of a model at an address. As an argument of its own type the function would be
    typed and its address be looked up at every call, which takes as long as 2000 samples."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        returned = context.get_value_type(TILE_SIGNATURE.return_type)
        kind = ir.FunctionType(returned, [context.get_value_type(a) for a in TILE_SIGNATURE.args])
        builder.call(builder.inttoptr(arguments[0], kind.as_pointer()), arguments[1:])
        return context.get_dummy_value()

    return types.void(address, tile, p), generate


@_compiled
def _fill(tile: Array, first: int, rows: Array, start: int, size: int) -> int:
    """Copy columns into the tile; where there are fewer than 64 the last one fills the rest."""
    for i in range(rows.shape[0]):
        at = first + i * TILE
        if size == TILE:
            _copy(tile, at, rows, i * rows.shape[1] + start)  # type: ignore[call-arg]
        else:
            for j in range(TILE):
                tile[at + j] = rows[i, start + min(j, size - 1)]
    return first + rows.shape[0] * TILE


@_compiled
def _take(tile: Array, first: int, targets: Any, out: Array, start: int, size: int) -> int:
    """Copy results out of the tile, each into its row of the array."""
    for i in range(targets.shape[0]):
        at, row = first + i * TILE, targets[i]
        if size == TILE:
            _copy(out, row * out.shape[1] + start, tile, at)  # type: ignore[call-arg]
        else:
            for j in range(size):
                out[row, start + j] = tile[at + j]
    return first + targets.shape[0] * TILE


@njit(
    types.void(
        *(types.intp, _VECTOR, _MATRIX, _MATRIX, _MATRIX, _MATRIX, _VECTOR),
        *(*_OUTPUT, *_OUTPUT, *_OUTPUT),
    ),
    nogil=True,
    cache=True,
)
def _over_tiles(
    address: int, tile: Array, ts: Array, x: Array, u: Array, sets: Array, p: Array,
    a: Array, rows_a: Any, b: Array, rows_b: Any, c: Array, rows_c: Any,
) -> None:  # fmt: skip
    for start in range(0, ts.shape[1], TILE):
        size = min(TILE, ts.shape[1] - start)
        at = _fill(tile, 0, ts, start, size)
        at = _fill(tile, at, x, start, size)
        at = _fill(tile, at, u, start, size)
        at = _fill(tile, at, sets, start, size)
        _compute(address, tile, p)  # type: ignore[call-arg]
        at = _take(tile, at, rows_a, a, start, size)
        at = _take(tile, at, rows_b, b, start, size)
        _take(tile, at, rows_c, c, start, size)


@dataclass(frozen=True, eq=False)
class _Output:
    """Where the results of one array belong; rows of a matrix are counted in order."""

    rows: NDArray[np.int64]  # of the results that differ from sample to sample
    background: Array | None  # by row: what it holds otherwise, if not every row is computed


class ManySamples:
    """A kernel over samples in columns: (t[N], X[n, N], U[m, N], p[k] or P[k, N], results ...)."""

    def __init__(self, compute: Any, layout: Mapping[str, Any]) -> None:
        """``layout``: `rows` of the tile; `each`, whether parameters differ from sample to sample; and of
        each array of results its `results` (rows) and `background` (empty: nothing but results)."""
        self._compute = compute  # machine code lives as long as its function
        result = compute.get_compile_result(TILE_SIGNATURE)
        self._address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
        self._size, self._each = TILE * layout["rows"], layout["each"]
        self._outputs = [
            _Output(
                np.array(one["results"], dtype=np.int64),
                np.array(one["background"], dtype=float) if one["background"] else None,
            )
            for one in layout["outputs"]
        ]

    def __call__(self, ts: Array, x: Array, u: Array, p: Array, *results: Array) -> None:
        given: list[Any] = []
        for output, array in zip(self._outputs, results, strict=True):
            if not array.flags.c_contiguous:  # a copy would be written instead
                raise TypeError("The arrays that a kernel writes must be contiguous.")
            flat = array.reshape(-1, len(ts)) if array.size else np.empty((0, len(ts)))
            if output.background is not None:
                flat[:] = output.background[: len(flat), None]
            given += [flat, output.rows]
        while len(given) < 6:
            given += [_NOTHING, _NO_ROWS]
        sets, shared = (p, _NO_PARAMETERS) if self._each else (_NOTHING, p)
        _over_tiles(self._address, np.empty(self._size), ts.reshape(1, -1), x, u, sets, shared, *given)


_NOTHING, _NO_ROWS, _NO_PARAMETERS = np.empty((0, 0)), np.empty(0, dtype=np.int64), np.empty(0)
