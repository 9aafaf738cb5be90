"""Homotopy from the far corner of the bounds against global search and multiple shooting.

Single-well van der Pol-Duffing oscillator of Manikantan et al. 2020, 20 s of x at 100 Hz, upper bounds.
Differential evolution with `solve_ivp` would take minutes: its simulations are counted in a run with the
compiled model (same seed, same settings, same answer), and `solve_ivp` is timed on a sample of them.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import differential_evolution

from analysis.base.identification import Identification
from analysis.estimate.homotopy.coupled import CLASSICAL, Controller, run_coupled, segments_of
from analysis.estimate.methods import identify
from analysis.experiment import Experiment
from analysis.simulation.simulate import sensitivities, simulate
from app.reproduce.manikantan2020.common import at_bound
from app.reproduce.manikantan2020.wells import model_name, well_record
from benchmarks.measure import Measurement, median_times
from drivers.library import load_model

Array = NDArray[np.float64]

CASE = "single_well"
TRUTH = np.array([0.5, 0.5, 0.1])  # alpha, beta, mu
LOWER, UPPER = np.array([0.1, 0.1, 0.01]), np.array([10.0, 10.0, 2.0])
SEED = 1
TIMED = 24  # simulations of differential evolution on which solve_ivp is timed
STARTS = 5  # of multiple shooting: the far corner and random ones


def measure() -> list[Measurement]:
    record = well_record(CASE)
    start = at_bound(model_name(CASE), "upper")

    def ours() -> Identification:
        return identify(start, record, "homotopy")

    seconds = median_times({"ours": ours}, 15)["ours"]
    found = ours()
    values = np.array([found.values()[name] for name in ("alpha", "beta", "mu")])
    right = bool(np.abs(values - TRUTH).max() < 1e-6)
    return [
        *_global(record["x"], seconds, right, found.evaluations),
        *_shooting(record["x"], seconds),
        *_run(),
    ]


def _global(x: Array, seconds: float, right: bool, runs: int) -> list[Measurement]:
    """Differential evolution with the compiled model, and what it would cost with solve_ivp."""
    model, moments = load_model(model_name(CASE)), np.arange(len(x)) / 100.0
    visited: list[Array] = []

    def cost(p: Array) -> float:
        visited.append(p.copy())
        values = dict(zip(("alpha", "beta", "mu"), map(float, p), strict=True))
        return float(np.sum((simulate(model, moments, values=values, method="rk4")["x"] - x) ** 2))

    cost(TRUTH)
    visited.clear()
    begin = time.process_time()
    best = differential_evolution(cost, list(zip(LOWER, UPPER, strict=True)), rng=np.random.default_rng(SEED))
    compiled = time.process_time() - begin
    solved = bool(np.abs(best.x - TRUTH).max() < 1e-3)
    sample = [visited[i] for i in np.linspace(0, len(visited) - 1, TIMED).astype(int)]
    each = statistics.mean(_solve_ivp_seconds(p, moments) for p in sample)
    work = f"{CASE.replace('_', ' ')} from the far corner"
    counts = f"{runs} runs with sensitivities against {len(visited)} simulations"
    lost = "" if solved else "; the global search missed the answer"
    slow = f"extrapolated: {len(visited)} simulations of {1e3 * each:.0f} ms, timed on {TIMED} of them"
    return [
        Measurement(work, "SciPy DE + solve_ivp", each * len(visited), seconds, right, 2000.0, slow + lost),
        Measurement(work, "SciPy DE, compiled", compiled, seconds, right, 30.0, counts + lost),
    ]


def _solve_ivp_seconds(p: Array, moments: Array) -> float:
    alpha, beta, mu = map(float, p)

    def rhs(t: float, y: Array) -> list[float]:
        x, v = y
        return [v, mu * (1 - x * x) * v - alpha * x - beta * x**3 + 0.5 * np.cos(0.79 * t)]

    begin = time.process_time()
    solve_ivp(rhs, (0.0, moments[-1]), [1.0, 0.0], t_eval=moments, rtol=1e-6, atol=1e-8)
    return time.process_time() - begin


def _shooting(x: Array, seconds: float) -> list[Measurement]:
    """CasADi multiple shooting (IPOPT, exact derivatives), 20 samples an interval."""
    work = f"{CASE.replace('_', ' ')} from poor guesses"
    try:
        import casadi
    except ModuleNotFoundError:
        return [Measurement(work, "CasADi multiple shooting", None, seconds, note="not installed")]
    rng = np.random.default_rng(SEED)
    starts = [UPPER, *(rng.uniform(LOWER, UPPER) for _ in range(STARTS - 1))]
    solve = _casadi_problem(casadi, x)
    solved, taken = 0, []
    for guess in starts:
        begin = time.process_time()
        found = solve(guess)
        taken.append(time.process_time() - begin)
        solved += bool(np.abs(found - TRUTH).max() < 1e-3)
    note = f"CasADi solves {solved} of {STARTS}, the problem built before; homotopy 100 of 100"
    return [
        Measurement(work, "CasADi multiple shooting", statistics.median(taken), seconds, None, None, note)
    ]


def _casadi_problem(casadi: Any, x: Array, every: int = 20) -> Any:
    """solve(guess) -> parameters; the states at the nodes start from the record and its differences."""
    dt = 0.01
    state, p, t = casadi.MX.sym("z", 2), casadi.MX.sym("p", 3), casadi.MX.sym("t")

    def slope(z: Any, at: Any) -> Any:
        force = 0.5 * casadi.cos(0.79 * at)
        return casadi.vertcat(z[1], p[2] * (1 - z[0] ** 2) * z[1] - p[0] * z[0] - p[1] * z[0] ** 3 + force)

    k1 = slope(state, t)
    k2 = slope(state + 0.5 * dt * k1, t + 0.5 * dt)
    k3 = slope(state + 0.5 * dt * k2, t + 0.5 * dt)
    k4 = slope(state + dt * k3, t + dt)
    step = casadi.Function("step", [state, p, t], [state + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)])
    z, ends = state, []
    for i in range(every):
        z = step(z, p, t + i * dt)
        ends.append(z)
    interval = casadi.Function("interval", [state, p, t], [z, casadi.horzcat(*[e[0] for e in ends])])
    intervals = (len(x) - 1) // every
    nodes = casadi.MX.sym("nodes", 2, intervals + 1)
    times = casadi.DM(every * dt * np.arange(intervals)).T
    arrived, outputs = interval.map(intervals)(nodes[:, :-1], casadi.repmat(p, 1, intervals), times)
    measured = casadi.DM(x[1 : intervals * every + 1].reshape(intervals, every)).T
    cost = casadi.sumsqr(casadi.reshape(outputs, every, intervals) - measured)
    gaps = casadi.vec(arrived - nodes[:, 1:])
    fixed = nodes[:, 0] - casadi.DM([1.0, 0.0])
    problem = {"x": casadi.vertcat(p, casadi.vec(nodes)), "f": cost, "g": casadi.vertcat(fixed, gaps)}
    quiet = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes", "ipopt.max_iter": 200}
    solver = casadi.nlpsol("shooting", "ipopt", problem, quiet)
    at_nodes = np.stack([x, np.gradient(x, dt)])[:, ::every][:, : intervals + 1]
    free = np.full(at_nodes.size, np.inf)

    def solve(guess: Array) -> Array:
        start = np.concatenate([guess, at_nodes.T.ravel()])
        box = {"lbx": np.concatenate([LOWER, -free]), "ubx": np.concatenate([UPPER, free])}
        return np.asarray(solver(x0=start, **box, lbg=0.0, ubg=0.0)["x"])[:3, 0]

    return solve


def _run() -> list[Measurement]:
    """One simulation with sensitivities, 2000 samples x 3 parameters: alone, and as the method makes it."""
    model, moments = load_model(model_name(CASE)), np.arange(2001) / 100.0
    segment = segments_of(Experiment(model, well_record(CASE)))[0]
    free, alone = np.arange(3), Controller.none(model)
    names = ["alpha", "beta", "mu"]
    runs: dict[str, Any] = {
        "simulation": lambda: sensitivities(model, moments, wrt=names, method="rk4"),
        "residuals": lambda: run_coupled(
            model, segment, model.values(), segment.initial, free, alone, 0.0, 1, True, CLASSICAL
        ),
    }
    times = median_times(runs, 51)
    work = "one run with sensitivities, 2000 x 3"
    note = f"the method's own run, which can be coupled to the record: {1e3 * times['residuals']:.2f} ms"
    return [Measurement(work, "1 ms", 1e-3, times["simulation"], None, 1.0, note)]
