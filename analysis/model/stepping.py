"""A kernel that takes many Runge-Kutta steps of many motions at once, each with its own parameters.

A whole step of 16 motions is one loop that the compiler turns into vector instructions; states and parameters
stay in a tile on the stack from step to step. Twice as fast as calling ``rhs_sets`` four times a step.
"""

from __future__ import annotations

from collections.abc import Mapping

from analysis.model.equations import System
from analysis.model.statements import loads, statements

MAX_VALUES = 120  # states and parameters of a model that is worth it; beyond, registers run out


def rk4_sets(system: System, names: Mapping[str, str], states: int, tile: int) -> str | None:
    """Source of ``rk4_sets(ts[N], hs[N], steps, x[n, N], p[k, N])``, which moves x by ``steps`` steps of hs.

    None for models with measured inputs and for very large ones.
    """
    used = loads(system, names, system.rhs)
    constants = [v for v in used if v[0] == "p"]
    if any(v[0] == "u" for v in used) or states + len(constants) > MAX_VALUES:
        return None
    body = statements(system, names, system.rhs, vectorised=True)
    x = [f"x{i}" for i in range(states)]
    slope = [
        "@njit(error_model='numpy', nogil=True, fastmath={'contract', 'arcp', 'nsz'}, forceinline=True)",
        f"def slope_of_one({', '.join(['t', *x, *constants])}):",
        *(f"    {line}" for line in body.lines),
        f"    return ({', '.join(body.text[node] for node in system.rhs)},)",
    ]
    rows = [*x, *constants]
    size = (2 + len(rows)) * tile
    lines = [
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
        *_stage("a", "t", x, constants, ""),
        *_stage("b", "t + 0.5*h", x, constants, "0.5*h*a"),
        *_stage("c", "t + 0.5*h", x, constants, "0.5*h*b"),
        *_stage("d", "t + h", x, constants, "h*c"),
        *(
            f"                tile[{(2 + i) * tile} + j] = x{i} + h/6.0*(a{i} + 2.0*(b{i} + c{i}) + d{i})"
            for i in range(states)
        ),
        "        for j in range(size):",
        *(f"            x[{i}, start + j] = tile[{(2 + i) * tile} + j]" for i in range(states)),
    ]
    return "\n".join([*slope, "", "", *lines]) + "\n"


def _stage(result: str, time: str, x: list[str], constants: list[str], shift: str) -> list[str]:
    """One slope at the states moved by ``shift`` (times the earlier slope of the same state)."""
    moved = [f"{v} + {shift}{i}" if shift else v for i, v in enumerate(x)]
    targets = ", ".join(f"{result}{i}" for i in range(len(x)))
    return [f"                {targets}, = slope_of_one({', '.join([time, *moved, *constants])})"]
