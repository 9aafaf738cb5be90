"""`auto` beside what an engineer would write: SciPy single shooting and CasADi multiple shooting.

    python -m benchmarks shooters [--seeds 3] [--system chain_2,velocity_duffing]

Five of the strangers (see strangers/), 1 % noise, the guesses of their model files, initial state unknown.
SciPy: odeint (LSODA) on compiled equations and least_squares (trust region, scaled by the Jacobian, the
model's bounds), on 5, 15, 40 and 100 % of the record in turn. CasADi: two Runge-Kutta steps a sample, a node
every 20 samples, IPOPT with exact derivatives, states at the nodes begun from the record. Each reads the
equations by itself. Compared: processor seconds (models compiled and problems built before), and the largest
distance of a parameter from the truth in our standard errors.
"""

from __future__ import annotations

import math
import statistics
import time
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.integrate import odeint
from scipy.interpolate import CubicSpline
from scipy.optimize import least_squares

from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model
from benchmarks.measure import Measurement
from benchmarks.strangers.system import System, load
from benchmarks.strangers.truth import measured, true_record

Array = NDArray[np.float64]

SYSTEMS = (
    "accelerometer_duffing",
    "chain_2",
    "displacement_and_accelerometer",
    "relative_displacement",
    "velocity_duffing",
)
LEVEL = 0.01  # noise over the spread of each channel
SAME = 1.1  # times the distance of a peer from the truth, plus a tenth of an error, that is still as accurate
GROWING = (0.05, 0.15, 0.4, 1.0)  # SciPy: shares of the record, one after the other
EVERY, STEPS = 20, 2  # CasADi: samples between nodes, Runge-Kutta steps of a sample


@dataclass(frozen=True)
class Task:
    """Equations and guesses as a peer reads them, and the record."""

    states: tuple[str, ...]
    equations: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: dict[str, str]
    fixed: dict[str, float]
    guesses: dict[str, float]
    lower: Array
    record: Record

    @classmethod
    def of(cls, system: System, record: Record) -> Task:
        text = tomllib.loads(system.model)
        given = text["parameters"]
        free = {n: g for n, g in given.items() if isinstance(g, dict) and "guess" in g}
        fixed = {
            n: float(g["value"] if isinstance(g, dict) else g) for n, g in given.items() if n not in free
        }
        outputs = text.get("outputs", {n: n for n in text["states"]})
        shown = {n: e for n, e in outputs.items() if n in (system.sensors or outputs)}
        return cls(
            tuple(text["states"]),
            tuple(text["states"].values()),
            tuple(text.get("inputs", {})),
            shown,
            fixed,
            {n: float(g["guess"]) for n, g in free.items()},
            np.array([float(g.get("lower", -np.inf)) for g in free.values()]),
            record,
        )

    def compiled(self, expressions: tuple[str, ...], functions: dict[str, Any]) -> Callable[..., Any]:
        """Functions of (states, inputs, parameters) that give the values of the expressions."""
        names = [*self.states, *self.inputs, *self.guesses]
        body = ", ".join(e.replace("^", "**") for e in expressions)
        scope = {**functions, **self.fixed}
        return eval(compile(f"lambda {', '.join(names)}: ({body},)", "model", "eval"), scope)  # type: ignore[no-any-return]


def measure(quick: bool = False, seeds: int = 3, system: str = "") -> list[Measurement]:
    """Two rows for each system: beside SciPy and beside CasADi."""
    rows = []
    for name in system.split(",") if system else SYSTEMS[: 1 if quick else None]:
        found = [_compared(load(name), seed) for seed in range(1 if quick else seeds)]
        ours = statistics.median(one["ours"][1] for one in found)
        distance = max(one["ours"][0] for one in found)
        for peer in ("SciPy single shooting", "CasADi multiple shooting"):
            if peer not in found[0]:
                rows.append(Measurement(name, peer, None, ours, None, None, "not installed"))
                continue
            taken = statistics.median(one[peer][1] for one in found)
            theirs = [one[peer][0] for one in found]
            accurate = all(one["ours"][0] <= SAME * one[peer][0] + 0.1 for one in found)
            note = f"worst distance {distance:.2g}, {peer.split()[0]} {max(theirs):.2g}; {len(found)} seeds"
            rows.append(Measurement(name, peer, taken, ours, accurate, 1.0, note))
            print(f"{name}, {peer}: {taken:.2f} s, ours {ours:.2f} s; {note}", flush=True)
    return rows


def _compared(system: System, seed: int) -> dict[str, tuple[float, float]]:
    """Largest distance from the truth in our errors, and processor seconds, of each."""
    record = measured(system, true_record(system, seed), LEVEL, seed)
    model = Model.from_toml(system.model)
    model.kernels().prepare("rhs", "jac", "out", "out_jac", "out_jac_many", "jac_many")
    identify(model, record.cut(0, 200), "path")  # loads what is loaded once
    begin = time.process_time()
    result = identify(model, record)
    seconds = time.process_time() - begin
    errors = {name: result.parameters[name].stderr for name in system.truth}

    def distance(values: dict[str, float]) -> float:
        return max(abs(values[n] - v) / errors[n] for n, v in system.truth.items())

    found = {"ours": (distance(result.values()), seconds)}
    task = Task.of(system, record)
    for peer, prepare in (("SciPy single shooting", _scipy), ("CasADi multiple shooting", _casadi)):
        solve = prepare(task)
        if solve is None:
            continue
        begin = time.process_time()
        values = solve()
        found[peer] = distance(values), time.process_time() - begin
    return found


def _scipy(task: Task) -> Callable[[], dict[str, float]]:
    """Single shooting from the guess on more and more of the record, all that it calls compiled."""
    functions = {f: getattr(math, f) for f in ("sin", "cos", "tanh", "exp", "sqrt")} | {"abs": abs}
    equations = njit(task.compiled(task.equations, functions))
    seen = task.compiled(tuple(task.outputs.values()), {f: getattr(np, f) for f in functions})
    record, k, n = task.record, len(task.guesses), len(task.states)
    times, dt = record.times, record.dt
    spline = CubicSpline(times, np.array([record[name] for name in task.inputs]), axis=1)
    pieces = np.ascontiguousarray(spline.c.transpose(2, 1, 0))  # [m, N - 1, 4], highest power first
    data = np.array([record[name] for name in task.outputs])
    spread = data.std(axis=1, keepdims=True)
    names = [f"x[{i}]" for i in range(n)] + [f"u[{i}]" for i in range(len(pieces))]
    names += [f"p[{i}]" for i in range(k)]
    source = (
        "def slope(x, t, p):\n"
        f"    i = min(max(int(t / dt), 0), {pieces.shape[1] - 1})\n"
        "    s = t - i * dt\n"
        "    c = pieces[:, i]\n"
        "    u = ((c[:, 0] * s + c[:, 1]) * s + c[:, 2]) * s + c[:, 3]\n"
        f"    return np.array(equations({', '.join(names)}))\n"
    )
    scope: dict[str, Any] = {"np": np, "dt": dt, "pieces": pieces, "equations": equations}
    exec(compile(source, "slope", "exec"), scope)
    slope = njit(scope["slope"])
    slope(np.zeros(n), 0.0, np.array(list(task.guesses.values())))  # compiles it

    def residuals(unknown: Array, count: int) -> Array:
        with np.errstate(all="ignore"):
            motion = odeint(slope, unknown[k:], times[:count], (unknown[:k],), rtol=1e-8, atol=1e-9)
            shown = np.array(seen(*motion.T, *spline(times[:count]), *unknown[:k]))
        left = ((shown - data[:, :count]) / spread).ravel()
        return np.where(np.isfinite(left), np.clip(left, -1e3, 1e3), 1e3)

    def solve() -> dict[str, float]:
        unknown = np.concatenate([list(task.guesses.values()), np.full(n, 0.01)])
        lower = np.concatenate([task.lower, np.full(n, -np.inf)])
        for share in GROWING:
            count = round(share * len(times))
            unknown = least_squares(
                residuals, unknown, bounds=(lower, np.inf), x_scale="jac", args=(count,), max_nfev=60,
                diff_step=1e-4,  # well above the integrator's own error
            ).x  # fmt: skip
        return dict(zip(task.guesses, unknown[:k].tolist(), strict=True))

    return solve


def _casadi(task: Task) -> Callable[[], dict[str, float]] | None:
    """Multiple shooting; None where CasADi is not installed."""
    try:
        import casadi
    except ModuleNotFoundError:
        return None
    functions = {f: getattr(casadi, f) for f in ("sin", "cos", "tanh", "exp", "sqrt")} | {"abs": casadi.fabs}
    record, n, m, k = task.record, len(task.states), len(task.inputs), len(task.guesses)
    slope = task.compiled(task.equations, functions)
    seen = task.compiled(tuple(task.outputs.values()), functions)
    x, p = casadi.SX.sym("x", n), casadi.SX.sym("p", k)
    u = casadi.SX.sym("u", m, 2 * STEPS + 1)  # the inputs at all stages of a sample interval

    def rate(z: Any, stage: int) -> Any:
        return casadi.vertcat(
            *slope(*casadi.vertsplit(z), *casadi.vertsplit(u[:, stage]), *casadi.vertsplit(p))
        )

    z, h = x, record.dt / STEPS
    for step in range(STEPS):
        k1 = rate(z, 2 * step)
        k2 = rate(z + h / 2 * k1, 2 * step + 1)
        k3 = rate(z + h / 2 * k2, 2 * step + 1)
        k4 = rate(z + h * k3, 2 * step + 2)
        z = z + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    shown = casadi.vertcat(*seen(*casadi.vertsplit(x), *casadi.vertsplit(u[:, 0]), *casadi.vertsplit(p)))
    sample = casadi.Function("sample", [x, p, u], [z, shown])
    x, p = casadi.MX.sym("x", n), casadi.MX.sym("p", k)
    stages = casadi.MX.sym("stages", m, EVERY * (2 * STEPS + 1))
    state, columns = x, []
    for i in range(EVERY):
        state, output = sample(state, p, stages[:, i * (2 * STEPS + 1) : (i + 1) * (2 * STEPS + 1)])
        columns.append(output)
    interval = casadi.Function("interval", [x, p, stages], [state, casadi.horzcat(*columns)])
    count = (len(record) - 1) // EVERY
    spline = CubicSpline(record.times, np.array([record[name] for name in task.inputs]), axis=1)
    fine = record.dt * (np.arange(count * EVERY)[:, None] + np.arange(2 * STEPS + 1) / (2 * STEPS)).ravel()
    nodes = casadi.MX.sym("nodes", n, count + 1)
    arrived, outputs = interval.map(count)(nodes[:, :-1], casadi.repmat(p, 1, count), casadi.DM(spline(fine)))
    data = np.array([record[name] for name in task.outputs])
    weight = 1.0 / data.std(axis=1, keepdims=True)
    error = (outputs - casadi.DM(data[:, : count * EVERY])) * casadi.DM(np.tile(weight, count * EVERY))
    problem = {
        "x": casadi.vertcat(p, casadi.vec(nodes)),
        "f": casadi.sumsqr(error),
        "g": casadi.vec(arrived - nodes[:, 1:]),
    }
    quiet = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes", "ipopt.max_iter": 200}
    solver = casadi.nlpsol("shooting", "ipopt", problem, quiet)
    begun = np.zeros((n, count + 1))
    for i, name in enumerate(task.states):
        if name in task.outputs and task.outputs[name] == name:
            begun[i] = record[name][::EVERY][: count + 1]
    lower = np.concatenate([task.lower, np.full(begun.size, -np.inf)])

    def solve() -> dict[str, float]:
        first = np.concatenate([list(task.guesses.values()), begun.T.ravel()])
        found = np.asarray(solver(x0=first, lbx=lower, ubx=np.inf, lbg=0.0, ubg=0.0)["x"])[:k, 0]
        return dict(zip(task.guesses, found.tolist(), strict=True))

    return solve
