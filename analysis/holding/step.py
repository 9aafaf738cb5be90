"""One decision of the loop, compiled and without allocation: estimate, catch, correct.

The state of the specimen is estimated by an extended Kalman filter that runs from the first sample: carried
over the tick by the model with all commands known, then moved towards the sensors' values one by one.
While it watches, every tick and every one of the k shifts of the orbit is a chance: the loop closes where the
deviation is small and its cost-to-go can be paid by corrections well inside their bound.
"""

from __future__ import annotations

import numpy as np
from numba import boolean, float64, int64, void

from analysis.base.compiling import njit
from analysis.holding.kernel_address import jac_at, jac_u_at, out_jac_at
from analysis.holding.tick import advance_tick, base_force, begin_tick

_vector = float64[::1]
_matrix = float64[:, ::1]
_cube = float64[:, :, ::1]

WATCHING, HOLDING = 0, 1
TWO_PI = 2 * np.pi
# Places in ``memory``: what changes from tick to tick
PHASE, TURN, STATE, SHIFT, COMMAND, DISTANCE, STARTED, INNOVATION, SEEN, LOSSES, SHOWN = range(11)
# Places in ``rules``: what does not
MULTIPLE, NODES, WHOLE, AMPLITUDE, BOUND, NEAR, FAR, COST, FORCE, ACTIVE = range(10)
FADE = 0.7  # of the command from tick to tick after the orbit is lost


@njit(cache=True, nogil=True)
def orbit_at(table, place, out):  # type: ignore[no-untyped-def]
    """The orbit [n, K] at a place (in columns, any real number): cubic through four columns."""
    count = table.shape[1]
    base = int(np.floor(place))
    f = place - base
    w0 = -f * (f - 1.0) * (f - 2.0) / 6.0
    w1 = (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0
    w2 = -(f + 1.0) * f * (f - 2.0) / 2.0
    w3 = (f + 1.0) * f * (f - 1.0) / 6.0
    a, b, c, d = (base - 1) % count, base % count, (base + 1) % count, (base + 2) % count
    for i in range(len(out)):
        out[i] = w0 * table[i, a] + w1 * table[i, b] + w2 * table[i, c] + w3 * table[i, d]


# Of ``estimate``: samples, theta, applied, carry, and what stays the same.
_FILTER = (
    _vector, float64, float64, boolean, int64[::1], _vector, _vector, _vector, _vector,
    _matrix, _vector, _matrix, _matrix, _vector, _vector, int64[::1], _vector, _matrix, _matrix, _cube,
    _vector, _vector, _vector, _matrix, _matrix, _matrix, _vector, _matrix, _matrix, _vector,
)  # fmt: skip


@njit(void(*_FILTER), cache=True, nogil=True)
def estimate(  # type: ignore[no-untyped-def]
    samples,
    theta,
    applied,
    carry,
    functions,
    p,
    timing,
    force,
    process,
    modes,
    history,
    y,
    S,
    own,
    noise,
    rows,
    memory,
    SA,
    SB,
    work,
    x,
    u,
    dx,
    Jx,
    Jp,
    Ju,
    outputs,
    Ox,
    Op,
    spread,
):
    """Carry the estimate (last column of ``y``, covariance ``S``) to this tick and take its samples in.

    ``functions``: addresses of the model's. ``applied``: the command that went out at the last tick, in
    volts. ``carry``: there was a last tick. ``spread``: of the states, with which an estimate that left all
    bounds begins anew.
    """
    jac = jac_at(functions[0], functions[1])
    jac_u = jac_u_at(functions[2], functions[3])
    out_jac = out_jac_at(functions[4], functions[5])
    size, n = y.shape[0], len(x)
    last = y.shape[1] - 1
    if carry:
        for k in range(len(history) - 1, 0, -1):
            history[k] = history[k - 1]
        history[0] = applied
        whole = len(history) - 2
        begin_tick(y, own)
        advance_tick(
            jac, jac_u, p, y, own, memory[PHASE], history[whole + 1], history[whole], timing, force, modes, n,
            work, x, u, dx, Jx, Jp, Ju,
        )  # fmt: skip
        for i in range(size):
            for j in range(size):
                total = 0.0
                for k in range(size):
                    total += y[i, k] * S[k, j]
                SA[i, j] = total
        for i in range(size):
            for j in range(size):
                total = 0.0
                for k in range(size):
                    total += SA[i, k] * y[j, k]
                SB[i, j] = total
            SB[i, i] += process[i]
        for i in range(size):
            for j in range(size):
                S[i, j] = 0.5 * (SB[i, j] + SB[j, i])
    turn = (theta - memory[PHASE]) % TWO_PI
    if carry and memory[PHASE] + turn >= TWO_PI - 1e-9:
        memory[TURN] += 1.0
    memory[PHASE] = theta % TWO_PI
    if memory[PHASE] > TWO_PI - 1e-9:
        memory[PHASE] = 0.0
    memory[INNOVATION] = 0.0
    memory[SEEN] = 0.0
    u[0] = base_force(theta, force) + own[last]
    for c in range(len(rows)):
        if not np.isfinite(samples[c]):
            continue
        for i in range(n):
            x[i] = y[i, last]
        out_jac(0.0, x, u, p, outputs, Ox, Op)
        row = rows[c]
        seen = outputs[row]
        for m in range(modes.shape[0]):
            seen += modes[m, 2 + 2 * c] * y[n + 2 * m, last] + modes[m, 3 + 2 * c] * y[n + 2 * m + 1, last]
        for i in range(size):  # SA[0]: covariance of the states with what this sensor shows
            total = 0.0
            for k in range(n):
                total += S[i, k] * Ox[row, k]
            for m in range(modes.shape[0]):
                total += S[i, n + 2 * m] * modes[m, 2 + 2 * c] + S[i, n + 2 * m + 1] * modes[m, 3 + 2 * c]
            SA[0, i] = total
        variance = noise[c] * noise[c]
        for k in range(n):
            variance += Ox[row, k] * SA[0, k]
        for m in range(modes.shape[0]):
            variance += modes[m, 2 + 2 * c] * SA[0, n + 2 * m] + modes[m, 3 + 2 * c] * SA[0, n + 2 * m + 1]
        miss = samples[c] - seen
        memory[INNOVATION] += miss * miss / variance + np.log(variance)
        memory[SEEN] += miss * miss / variance
        for i in range(size):
            y[i, last] += SA[0, i] * miss / variance
        for i in range(size):
            for j in range(i, size):
                S[i, j] -= SA[0, i] * SA[0, j] / variance
                S[j, i] = S[i, j]
    _begin_anew_if_lost(y, S, own, spread)


@njit(cache=True, nogil=True)
def _begin_anew_if_lost(y, S, own, spread):  # type: ignore[no-untyped-def]
    """An estimate that is no number any more would stay so for ever."""
    size, last = y.shape[0], y.shape[1] - 1
    total = 0.0
    for i in range(size):
        total += y[i, last]
    if np.isfinite(total):
        return
    for i in range(size):
        y[i, last] = 0.0
        for j in range(size):
            S[i, j] = spread[i] * spread[i] if i == j else 0.0
    for k in range(len(own)):
        own[k] = 0.0


@njit(cache=True, nogil=True)
def _deviation(memory, rules, table, fine, scale, history, y, own, z, here, shift):  # type: ignore[no-untyped-def]
    """Fill z = (d, past commands) for a shift of the orbit by whole periods; the distance |d|."""
    n = len(scale)
    last = y.shape[1] - 1
    turn = (memory[TURN] + shift) % rules[MULTIPLE]
    place = (turn + memory[PHASE] / TWO_PI) * rules[NODES] * fine
    orbit_at(table, place, here)
    total = 0.0
    for i in range(n):
        z[i] = (y[i, last] - here[i]) / scale[i]
        total += z[i] * z[i]
    z[n] = own[last] / rules[FORCE]
    for k in range(n + 1, len(z)):
        z[k] = history[k - n - 1] / rules[AMPLITUDE]
    return np.sqrt(total)


@njit(cache=True, nogil=True)
def _decide(memory, rules, table, fine, scale, history, y, own, gains, costs, z, here):  # type: ignore[no-untyped-def]
    """The command of this tick in volts: from the estimate and the orbit."""
    count = gains.shape[0]
    k = int(rules[MULTIPLE])
    nodes = rules[NODES]
    if memory[STATE] == WATCHING:
        memory[DISTANCE] = np.inf
        for shift in range(k):
            distance = _deviation(memory, rules, table, fine, scale, history, y, own, z, here, shift)
            memory[DISTANCE] = min(memory[DISTANCE], distance)
            if distance > rules[NEAR] or rules[ACTIVE] == 0.0:
                continue
            turn = (memory[TURN] + shift) % k
            node = int(np.rint((turn + memory[PHASE] / TWO_PI) * nodes)) % count
            cost = 0.0
            for a in range(len(z)):
                for b in range(len(z)):
                    cost += z[a] * costs[node, a, b] * z[b]
            if cost < rules[COST]:
                memory[STATE], memory[SHIFT], memory[STARTED] = HOLDING, shift, 1.0
                break
    if memory[STATE] == WATCHING:
        memory[COMMAND] *= FADE
        if abs(memory[COMMAND]) < 1e-6 * rules[AMPLITUDE]:
            memory[COMMAND] = 0.0
        return memory[COMMAND]
    distance = _deviation(memory, rules, table, fine, scale, history, y, own, z, here, memory[SHIFT])
    memory[DISTANCE] = distance
    if not distance < rules[FAR]:
        memory[STATE] = WATCHING
        memory[LOSSES] += 1.0
        memory[COMMAND] *= FADE
        return memory[COMMAND]
    turn = (memory[TURN] + memory[SHIFT]) % k
    node = int(np.rint((turn + memory[PHASE] / TWO_PI) * nodes)) % count
    command = 0.0
    for a in range(len(z)):
        command -= gains[node, a] * z[a]
    command *= rules[AMPLITUDE]
    memory[COMMAND] = min(max(command, -rules[BOUND]), rules[BOUND])
    return memory[COMMAND]


@njit(
    float64(*_FILTER, _vector, _matrix, _matrix, int64, _vector, _matrix, _cube, _vector, _vector, _vector),
    cache=True, nogil=True,
)  # fmt: skip
def decide(  # type: ignore[no-untyped-def]
    samples, theta, applied, carry, functions, p, timing, force, process, modes, history, y, S, own, noise,
    rows, memory, SA, SB, work, x, u, dx, Jx, Jp, Ju, outputs, Ox, Op, spread,
    rules, table, shown, fine, scale, gains, costs, z, here, first,
):  # fmt: skip
    """Estimate (see there), then the command of this tick in volts; what is wanted of the first sensor is
    left in ``memory``. One call: what each array costs on its way into compiled code is paid once."""
    estimate(
        samples, theta, applied, carry, functions, p, timing, force, process, modes, history, y, S, own,
        noise, rows, memory, SA, SB, work, x, u, dx, Jx, Jp, Ju, outputs, Ox, Op, spread,
    )  # fmt: skip
    command = _decide(memory, rules, table, fine, scale, history, y, own, gains, costs, z, here)
    turn = (memory[TURN] + memory[SHIFT]) % rules[MULTIPLE]
    orbit_at(shown, (turn + memory[PHASE] / TWO_PI) * rules[NODES] * fine, first)
    memory[SHOWN] = first[0]
    return command
