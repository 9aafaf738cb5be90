"""Kernels that take whole integration steps of a model, the right-hand side written into every stage.

``rk4_sets`` moves many motions at once, each with its own parameters: a step of 16 motions is one loop that
the compiler turns into vector instructions, and states and parameters stay in a tile on the stack from step
to step. ``dop853`` is the trial step of the adaptive integrator without calls or memory between its stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from analysis.model.equations import System
from analysis.model.statements import loads, statements
from analysis.model.tableau import E3, E5, A, C

MAX_VALUES = 120  # states and parameters of a model worth a loop over sets; beyond, registers run out
MAX_STATES, MAX_LINES = (
    4,
    40,
)  # of a model worth a dop853 of its own: larger ones compile long and gain little

_INLINED = "@njit(error_model='numpy', nogil=True, fastmath={'contract', 'arcp', 'nsz'}, forceinline=True)"


def stepping_kernels(system: System, names: Mapping[str, str], states: int, tile: int) -> list[str]:
    """Sources of the kernels that suit the model; none with measured inputs."""
    used = loads(system, names, system.rhs)
    constants = [v for v in used if v[0] == "p"]
    if any(v[0] == "u" for v in used) or states + len(constants) > MAX_VALUES:
        return []
    body = statements(system, names, system.rhs, vectorised=True)
    x = [f"x{i}" for i in range(states)]
    slope = [
        _INLINED,
        f"def slope_of_one({', '.join(['t', *x, *constants])}):",
        *(f"    {line}" for line in body.lines),
        f"    return ({', '.join(body.text[node] for node in system.rhs)},)",
    ]
    parts = [slope, _rk4_sets(x, constants, tile)]
    if states <= MAX_STATES and len(body.lines) <= MAX_LINES:
        parts.append(_dop853(x, constants))
    return ["\n".join(lines) + "\n" for lines in parts]


def _slope(result: str, time: str, at: Sequence[str], constants: Sequence[str], indent: int) -> str:
    """A statement that takes the slope: result0, result1, ... at the given states."""
    targets = ", ".join(f"{result}{i}" for i in range(len(at)))
    return f"{' ' * indent}{targets}, = slope_of_one({', '.join([time, *at, *constants])})"


def _rk4_sets(x: Sequence[str], constants: Sequence[str], tile: int) -> list[str]:
    """rk4_sets(ts[N], hs[N], steps, x[n, N], p[k, N]): x moves by ``steps`` steps of its own size hs."""
    rows = [*x, *constants]
    size = (2 + len(rows)) * tile

    def stage(result: str, time: str, shift: str) -> str:
        return _slope(result, time, [f"{v} + {shift}{i}" for i, v in enumerate(x)], constants, 16)

    return [
        "def rk4_sets(ts, hs, steps, x, p):",
        f"    tile = carray(stack({size}), ({size},))",
        f"    for start in range(0, ts.shape[0], {tile}):",
        f"        size = min({tile}, ts.shape[0] - start)",
        f"        for j in range({tile}):",
        "            lane = start + min(j, size - 1)",
        "            tile[j] = ts[lane]",
        f"            tile[{tile} + j] = hs[lane]",
        *(f"            tile[{(2 + r) * tile} + j] = {v[0]}[{v[1:]}, lane]" for r, v in enumerate(rows)),
        "        for s in range(steps):",
        f"            for j in range({tile}):",
        f"                h = tile[{tile} + j]",
        "                t = tile[j] + s*h",
        *(f"                {v} = tile[{(2 + r) * tile} + j]" for r, v in enumerate(rows)),
        _slope("a", "t", x, constants, 16),
        stage("b", "t + 0.5*h", "0.5*h*a"),
        stage("c", "t + 0.5*h", "0.5*h*b"),
        stage("d", "t + h", "h*c"),
        *(
            f"                tile[{(2 + i) * tile} + j] = x{i} + h/6.0*(a{i} + 2.0*(b{i} + c{i}) + d{i})"
            for i in range(len(x))
        ),
        "        for j in range(size):",
        *(f"            x[{i}, start + j] = tile[{(2 + i) * tile} + j]" for i in range(len(x))),
    ]


def _dop853(x: Sequence[str], constants: Sequence[str]) -> list[str]:
    """dop853(t, h, x[n], p[k], k[16, n], x_new[n]): from the slope k[0] the slopes k[1..12], the errors
    k[13] and k[14], and x_new; see analysis/dop853.py."""
    n = range(len(x))
    lines = [
        "def dop853(t, h, x, p, k, x_new):",
        *(f"    {v} = {v[0]}[{v[1:]}]" for v in (*x, *constants)),
        *(f"    k0_{i} = k[0, {i}]" for i in n),
    ]
    for s in range(1, 13):
        mixed = [" + ".join(f"{float(A[s, j])!r}*k{j}_{i}" for j in range(s) if A[s, j]) for i in n]
        lines += [f"    y{i} = x{i} + h*({mixed[i]})" for i in n]
        lines.append(_slope(f"k{s}_", f"t + {float(C[s])!r}*h", [f"y{i}" for i in n], constants, 4))
        lines += [f"    k[{s}, {i}] = k{s}_{i}" for i in n]
    for row, weights in ((13, E5), (14, E3)):
        mixed = [" + ".join(f"{float(w)!r}*k{j}_{i}" for j, w in enumerate(weights) if w) for i in n]
        lines += [f"    k[{row}, {i}] = {mixed[i]}" for i in n]
    return [*lines, *(f"    x_new[{i}] = y{i}" for i in n)]
