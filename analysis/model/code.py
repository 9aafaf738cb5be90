"""The equations as source text for the compiler: one function for each kernel.

Kernels over many samples work on tiles of 64 samples: rows are copied into a small array (tiles.py), computed
there by a loop that the compiler turns into vector instructions (it can see that nothing overlaps), and
copied out. That is five to eight times faster than a plain loop over rows of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.model.equations import Equations, System
from analysis.model.graph import total_derivatives
from analysis.model.statements import loads, solver, statements, symbol_names
from analysis.model.stepping import sensitivity_kernel, stepping_kernels

TILE = 64  # samples; as in tiles.py, which is not imported here: it needs the compiler
STEP_TILE = 16  # of the steps of many motions beside each other, on the stack

_HEADER = '''"""Made by Shakedown from the equations of a model; may be deleted at any time."""
import math

import numpy as np
from numba import carray, njit
from numba.extending import intrinsic

from analysis.model.emission import machine_code
from analysis.model.runtime import cos, exp, sin, stack, tan, tanh

PATTERN_X = np.array({x}, dtype=np.int64).reshape(-1, 2).T
PATTERN_P = np.array({p}, dtype=np.int64).reshape(-1, 2).T
'''

Entries = dict[tuple[int, ...], int]  # index in the array of one sample: node


@dataclass(frozen=True)
class _Array:
    """An array that a kernel writes: a vector with every entry given, or a matrix with zeros elsewhere."""

    name: str
    entries: Entries
    is_matrix: bool = False
    height: int = 0  # rows of a matrix


@dataclass(frozen=True)
class _Kernel:
    """A function to be generated."""

    name: str
    arrays: tuple[_Array, ...]

    @property
    def wanted(self) -> list[int]:
        return [node for array in self.arrays for node in array.entries.values()]


def source(equations: Equations) -> str:
    """Source text of all kernels of the equations."""
    system = equations.system
    slopes, own = total_derivatives(system.graph, [*system.rhs, *system.outputs], system.solved)
    columns = {
        "x": {name: i for i, name in enumerate(equations.states)},
        "u": {name: i for i, name in enumerate(equations.measured)},
        "p": {name: i for i, name in enumerate(equations.parameters)},
    }

    def vector(name: str, nodes: Sequence[int]) -> _Array:
        return _Array(name, {(i,): node for i, node in enumerate(nodes)})

    def matrix(name: str, roots: Sequence[int], by: str) -> _Array:
        entries = {
            (row, columns[by][symbol]): slope
            for row, root in enumerate(roots)
            for symbol, slope in slopes[root].items()
            if symbol in columns[by]
        }
        return _Array(name, dict(sorted(entries.items())), is_matrix=True, height=len(roots))

    dx, y = vector("dx", system.rhs), vector("y", system.outputs)
    jx, jp, ju = (matrix(f"J{by}", system.rhs, by) for by in "xpu")
    yx, yp = (matrix(f"Y{by}", system.outputs, by) for by in "xp")
    vx, vp = (vector(f"V{j.name[1]}", list(j.entries.values())) for j in (jx, jp))
    one_and_many = [
        _Kernel("rhs", (dx,)),
        _Kernel("jac", (dx, jx, jp)),
        _Kernel("out", (y,)),
        _Kernel("out_jac", (y, yx, yp)),
    ]
    many = [*one_and_many, _Kernel("jac_sparse", (dx, vx, vp)), _Kernel("jac_p_sparse", (dx, vp))]
    names = symbol_names(equations, system)
    parts = [_HEADER.format(x=list(jx.entries), p=list(jp.entries))]
    parts += [solver(system.graph, i, s, own[s.name]) for i, s in enumerate(system.solved)]
    parts += [_one_sample(system, names, kernel) for kernel in (*one_and_many, _Kernel("jac_u", (ju,)))]
    sizes = {"x": len(equations.states), "u": len(equations.measured)}
    parts.append("LAYOUTS = {}\n")
    width = {**sizes, "p": len(equations.parameters)}
    parts += [_tile(system, names, kernel, f"{kernel.name}_many", sizes, width) for kernel in many]
    sizes["p"] = len(equations.parameters)
    parts.append(_tile(system, names, one_and_many[0], "rhs_sets", sizes, width))
    parts += stepping_kernels(system, names, len(equations.states), STEP_TILE)
    parts += sensitivity_kernel(system, names, sizes, jx.entries, jp.entries)
    return "\n".join(parts)


def _one_sample(system: System, names: Mapping[str, str], kernel: _Kernel) -> str:
    body = statements(system, names, kernel.wanted)
    lines = [f"{name} = {name[0]}[{name[1:]}]" for name in loads(system, names, kernel.wanted)]
    lines += body.lines
    for array in kernel.arrays:
        if array.is_matrix:
            lines.append(f"{array.name}[:] = 0.0")
        for index, node in array.entries.items():
            lines.append(f"{array.name}[{', '.join(map(str, index))}] = {body.text[node]}")
    return _function(kernel.name, ["t", "x", "u", "p", *(array.name for array in kernel.arrays)], lines)


def _function(name: str, arguments: Sequence[str], lines: Sequence[str]) -> str:
    """A kernel whose statements are written down as machine code (emission.py)."""
    given = ", ".join(arguments)
    kinds = ", ".join(f"{argument}={argument}" for argument in arguments)
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    return f"""
def {name}_statements({given}):
{body}


@intrinsic
def {name}_block(_, {given}):
    return machine_code({name}_statements, {kinds})


def {name}({given}):
    {name}_block({given})
"""


def _tile(
    system: System,
    names: Mapping[str, str],
    kernel: _Kernel,
    name: str,
    sizes: Mapping[str, int],
    width: Mapping[str, int],
) -> str:
    """What computes one tile of a kernel, and where its results belong.

    ``sizes``: number of rows of each argument that differs from sample to sample; ``width``: columns of the
    matrices of derivatives. Rows of the tile: time, the arguments, then the results.
    """
    body = statements(system, names, kernel.wanted, vectorised=True)
    used = loads(system, names, kernel.wanted)
    first = {argument: 1 + sum(list(sizes.values())[:i]) for i, argument in enumerate(sizes)}
    lines = [f"{v} = p[{v[1:]}]" for v in used if v[0] not in sizes]
    lines += [f"for j in range({TILE}):", "    t = tile[j]"]
    lines += [f"    {v} = tile[{(first[v[0]] + int(v[1:])) * TILE} + j]" for v in used if v[0] in sizes]
    lines += [f"    {line}" for line in body.lines]
    row = 1 + sum(sizes.values())
    outputs = []
    for array in kernel.arrays:
        columns = width[array.name[1]] if array.is_matrix else 1
        constants = {i: system.graph.constant(node) for i, node in array.entries.items()}
        results = [i for i in array.entries if not array.is_matrix or constants[i] is None]
        for index in results:
            lines.append(f"    tile[{row * TILE} + j] = {body.text[array.entries[index]]}")
            row += 1
        background = [0.0] * (array.height * columns) if array.is_matrix else []
        if array.is_matrix:
            for index, value in constants.items():
                background[index[0] * columns + index[1]] = value or 0.0
        flat = [i[0] * columns + i[1] if array.is_matrix else i[0] for i in results]
        outputs.append({"results": flat, "background": background})
    layout = {"rows": row, "each": "p" in sizes, "outputs": outputs}
    return _function(name, ["tile", "p"], lines) + f"LAYOUTS[{name!r}] = {layout!r}\n"
