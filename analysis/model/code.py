"""The equations as source text for the compiler: one function for each kernel.

Kernels over many samples work on tiles of 16 samples: rows are copied into a small array on the stack,
computed there by a loop that the compiler turns into vector instructions (it can see that nothing overlaps),
and copied out. That is five to eight times faster than a plain loop over rows of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.model.equations import Equations, System
from analysis.model.graph import total_derivatives
from analysis.model.statements import loads, solver, statements, symbol_names
from analysis.model.stepping import sensitivity_kernel, stepping_kernels

TILE = 16  # as in runtime.py, which is not imported here: it needs the compiler
MAX_ROWS = 1000  # of a tile, which lies on the stack

_HEADER = '''"""Made by Shakedown from the equations of a model; may be deleted at any time."""
import math

import numpy as np
from numba import carray, njit

from analysis.model.runtime import cos, exp, read_row, sin, stack, tan, tanh, write_row

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


@dataclass(frozen=True)
class _Kernel:
    """A function to be generated."""

    name: str
    arrays: tuple[_Array, ...]

    @property
    def wanted(self) -> list[int]:
        return [node for array in self.arrays for node in array.entries.values()]

    def heading(self, name: str, time: str) -> str:
        return f"def {name}({time}, x, u, p, {', '.join(array.name for array in self.arrays)}):"


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
        return _Array(name, dict(sorted(entries.items())), is_matrix=True)

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
    parts += [_many_samples(system, names, kernel, f"{kernel.name}_many", sizes) for kernel in many]
    sizes["p"] = len(equations.parameters)
    parts.append(_many_samples(system, names, one_and_many[0], "rhs_sets", sizes))
    parts += stepping_kernels(system, names, len(equations.states), TILE)
    parts += sensitivity_kernel(system, names, sizes, jx.entries, jp.entries)
    return "\n".join(parts)


def _one_sample(system: System, names: Mapping[str, str], kernel: _Kernel) -> str:
    body = statements(system, names, kernel.wanted)
    lines = [kernel.heading(kernel.name, "t")]
    lines += [f"    {name} = {name[0]}[{name[1:]}]" for name in loads(system, names, kernel.wanted)]
    lines += [f"    {line}" for line in body.lines]
    for array in kernel.arrays:
        if array.is_matrix:
            lines += [
                f"    for i in range({array.name}.shape[0]):",
                f"        for j in range({array.name}.shape[1]):",
                f"            {array.name}[i, j] = 0.0",
            ]
        for index, node in array.entries.items():
            lines.append(f"    {array.name}[{', '.join(map(str, index))}] = {body.text[node]}")
    if len(lines) == 1:
        lines.append("    pass")
    return "\n".join(lines) + "\n"


def _many_samples(
    system: System, names: Mapping[str, str], kernel: _Kernel, name: str, sizes: Mapping[str, int]
) -> str:
    """``sizes``: number of rows of each argument that differs from sample to sample."""
    body = statements(system, names, kernel.wanted, vectorised=True)
    used = loads(system, names, kernel.wanted)
    lines = [kernel.heading(name, "ts")]
    lines += [f"    {v} = p[{v[1:]}]" for v in used if v[0] not in sizes]
    tables: list[str] = []
    for array in kernel.arrays:
        if array.is_matrix:
            lines += _zeros_and_constants(system, array)
    moving = [v for v in used if v[0] in sizes]
    entries = {array.name: _varying(system, array) for array in kernel.arrays}
    rows = 1 + sum(sizes.values()) + sum(map(len, entries.values()))
    if rows > MAX_ROWS:
        lines += _plain_loop(moving, body.lines, body.text, entries)
    else:
        first = {argument: 1 + sum(list(sizes.values())[:i]) for i, argument in enumerate(sizes)}
        tile = _Tile(name, sizes, first, {a.name: a.is_matrix for a in kernel.arrays}, entries)
        tables = tile.tables()
        lines += tile.loop(moving, body.lines, body.text, rows)
    return "\n".join([*tables, *lines]) + "\n"


def _varying(system: System, array: _Array) -> Entries:
    """The entries that a loop over the samples has to write."""
    if not array.is_matrix:
        return array.entries
    return {i: node for i, node in array.entries.items() if system.graph.constant(node) is None}


def _zeros_and_constants(system: System, array: _Array) -> list[str]:
    name = array.name
    lines = [
        f"    for i in range({name}.shape[0]):",
        f"        for j in range({name}.shape[1]):",
        f"            for s in range({name}.shape[2]):",
        f"                {name}[i, j, s] = 0.0",
    ]
    for index, node in array.entries.items():
        value = system.graph.constant(node)
        if value is not None:
            lines += [
                f"    for s in range({name}.shape[2]):",
                f"        {name}[{index[0]}, {index[1]}, s] = {value!r}",
            ]
    return lines


def _plain_loop(
    moving: Sequence[str], body: Sequence[str], text: Mapping[int, str], entries: Mapping[str, Entries]
) -> list[str]:
    """A loop straight over the arguments, for models whose tile would not fit on the stack."""
    lines = ["    for s in range(ts.shape[0]):", "        t = ts[s]"]
    lines += [f"        {v} = {v[0]}[{v[1:]}, s]" for v in moving]
    lines += [f"        {line}" for line in body]
    for name, given in entries.items():
        lines += [f"        {name}[{', '.join(map(str, i))}, s] = {text[node]}" for i, node in given.items()]
    return lines


@dataclass(frozen=True)
class _Tile:
    """The loop over tiles. Rows of the tile: time, the arguments, then what is written."""

    kernel: str
    sizes: Mapping[str, int]
    first: Mapping[str, int]  # row of the tile where each argument starts
    matrices: Mapping[str, bool]
    entries: Mapping[str, Entries]

    def tables(self) -> list[str]:
        """Where the rows of a matrix belong, as constants beside the function."""
        lines = []
        for name, is_matrix in self.matrices.items():
            if is_matrix and self.entries[name]:
                for axis, table in enumerate(self.table_names(name)):
                    lines.append(f"{table} = np.array({[index[axis] for index in self.entries[name]]})")
        return lines

    def loop(
        self, moving: Sequence[str], body: Sequence[str], text: Mapping[int, str], rows: int
    ) -> list[str]:
        size = rows * TILE
        lines = [
            f"    memory = stack({size})",
            f"    tile = carray(memory, ({size},))",
            f"    for start in range(0, ts.shape[0], {TILE}):",
            f"        size = min({TILE}, ts.shape[0] - start)",
            f"        if size == {TILE}:",
            *self.read_tile(),
            "        else:",
            *self.read_last(),
            f"        for j in range({TILE}):",
            "            t = tile[j]",
        ]
        lines += [f"            {v} = tile[{self.row(v[0], int(v[1:]))} + j]" for v in moving]
        lines += [f"            {line}" for line in body]
        row = 1 + sum(self.sizes.values())
        copies: list[tuple[str, int]] = []
        for name, given in self.entries.items():
            copies.append((name, row))
            for node in given.values():
                lines.append(f"            tile[{row * TILE} + j] = {text[node]}")
                row += 1
        lines.append(f"        if size == {TILE}:")
        lines += [line for copy in copies for line in self.write_tile(*copy)] or ["            pass"]
        lines.append("        else:")
        lines += [line for copy in copies for line in self.write_last(*copy)] or ["            pass"]
        return lines

    def row(self, argument: str, index: int) -> int:
        return (self.first[argument] + index) * TILE

    def read_tile(self) -> list[str]:
        lines = ["            read_row(memory, 0, ts, 0, start)"]
        for argument, count in self.sizes.items():
            if count:
                position = f"{self.row(argument, 0)} + i*{TILE}"
                lines.append(f"            for i in range({count}):")
                lines.append(f"                read_row(memory, {position}, {argument}, i, start)")
        return lines

    def read_last(self) -> list[str]:
        """Fewer samples than a tile holds: the last one fills the rest."""
        sample = "start + min(j, size - 1)"
        lines = [f"            for j in range({TILE}):", f"                tile[j] = ts[{sample}]"]
        for argument, count in self.sizes.items():
            if count:
                target = f"tile[{self.row(argument, 0)} + i*{TILE} + j]"
                lines += [
                    f"            for i in range({count}):",
                    f"                for j in range({TILE}):",
                    f"                    {target} = {argument}[i, {sample}]",
                ]
        return lines

    def write_tile(self, name: str, row: int) -> list[str]:
        target = "i"
        if self.matrices[name]:
            rows, columns = self.table_names(name)
            target = f"{rows}[i]*{name}.shape[1] + {columns}[i]"
        return self.over_rows(name, [f"write_row(memory, {row * TILE} + i*{TILE}, {name}, {target}, start)"])

    def write_last(self, name: str, row: int) -> list[str]:
        index = ", ".join(f"{table}[i]" for table in self.table_names(name)) if self.matrices[name] else "i"
        inner = f"    {name}[{index}, start + j] = tile[{row * TILE} + i*{TILE} + j]"
        return self.over_rows(name, ["for j in range(size):", inner])

    def over_rows(self, name: str, inner: list[str]) -> list[str]:
        count = len(self.entries[name])
        if not count:
            return []
        return [f"            for i in range({count}):", *(f"                {line}" for line in inner)]

    def table_names(self, name: str) -> tuple[str, str]:
        return f"ROWS_{self.kernel}_{name}", f"COLUMNS_{self.kernel}_{name}"
