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
MAX_STATES = 4  # of a model worth a dop853 of its own: larger ones compile long and gain little
MAX_LINES = 40  # of its right-hand side
MAX_JACOBIAN_LINES = 150  # of a model worth a run of sensitivities of its own

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
    k[13] and k[14], and x_new; see analysis/simulation/dop853.py."""
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


def sensitivity_kernel(
    system: System,
    names: Mapping[str, str],
    sizes: Mapping[str, int],
    jx: Mapping[tuple[int, ...], int],
    jp: Mapping[tuple[int, ...], int],
) -> list[str]:
    """Source of ``rk4_sensitivities``, a run of Runge-Kutta 4 with S' = Jx S + Jp
    (analysis/model/kernels.py).

    Empty for large models. ``sizes``: number of states x, measured inputs u and parameters p.
    """
    n, inputs, width = sizes["x"], sizes["u"], sizes["p"] + 1  # a column of zeros for initial values
    wanted = [*system.rhs, *jx.values(), *jp.values()]
    body = statements(system, names, wanted, vectorised=True)
    if len(body.lines) > MAX_JACOBIAN_LINES:
        return []
    used = loads(system, names, wanted)
    lines = [
        "from analysis.signal.inputs import input_values",
        "",
        "",
        "def rk4_sensitivities(times, substeps, y, p, columns, t0, dt, coefficients, bound, work, out):",
        f"    jp = carray(stack({n * width}), ({n * width},))",
        f"    u = carray(stack({max(inputs, 1)}), ({max(inputs, 1)},))",
        f"    for i in range({n * width}):",
        "        jp[i] = 0.0",
        "    m = len(columns)",
        f"    size = {n}*(1 + m)",
        "    w, total = work[0], work[1]",
        *(f"    {v} = p[{v[1:]}]" for v in used if v[0] == "p"),
        "    for i in range(size):",
        "        out[i, 0] = y[i]",
        "    for column in range(1, len(times)):",
        "        h = (times[column] - times[column - 1])/substeps",
        "        for s in range(substeps):",
        "            for i in range(size):",
        "                w[i] = y[i]",
        "                total[i] = y[i]",
        "            for stage in range(4):",
        "                t = times[column - 1] + s*h",
        "                ahead, weight = 0.5*h, h/3.0",
        "                if stage == 1 or stage == 2:",
        "                    t += 0.5*h",
        "                if stage == 2 or stage == 3:",
        "                    ahead = h",
        "                if stage == 0 or stage == 3:",
        "                    weight = h/6.0",
        "                if stage == 3:",
        "                    t += h",
    ]
    if inputs:
        lines.append("                input_values(t, t0, dt, coefficients, u)")
    inner = [
        *(f"{v} = {'w' if v[0] == 'x' else 'u'}[{v[1:]}]" for v in used if v[0] in "xu"),
        *body.lines,
        *(f"jp[{i * width + j + 1}] = {body.text[node]}" for (i, j), node in jp.items()),
        "for c in range(m):",
        *(f"    s{j} = w[{n} + {j}*m + c]" for j in range(n)),
    ]
    for i in range(n):
        terms = [f"({body.text[node]})*s{j}" for (row, j), node in jx.items() if row == i]
        inner.append(f"    d{i} = {' + '.join([f'jp[{i * width} + columns[c] + 1]', *terms])}")
    for i in range(n):
        inner.append(f"    total[{n} + {i}*m + c] += weight*d{i}")
        inner.append(f"    w[{n} + {i}*m + c] = y[{n} + {i}*m + c] + ahead*d{i}")
    for i, node in enumerate(system.rhs):
        inner.append(f"d{i} = {body.text[node]}")
    for i in range(n):
        inner += [f"total[{i}] += weight*d{i}", f"w[{i}] = y[{i}] + ahead*d{i}"]
    lines += [f"                {line}" for line in inner]
    lines += [
        "            for i in range(size):",
        "                y[i] = total[i]",
        f"        for i in range({n}):",
        "            if not (abs(y[i]) <= bound):",
        "                return column",
        "        for i in range(size):",
        "            out[i, column] = y[i]",
        "    return len(times)",
    ]
    return ["\n".join(lines) + "\n"]
