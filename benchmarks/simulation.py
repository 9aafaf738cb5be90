"""Simulation against heyoka.py (Taylor series, compiled), SciPy's DOP853 and its Radau.

The Duffing oscillator of Yuan 1995: a bifurcation diagram of 300 forces x 300 periods x 200 steps, and one
accurate trajectory over 500 periods; sensitivities of 2000 samples to three parameters; a stiff actuator.
SciPy is timed on a part of the work and scaled up where the note says on how much.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from analysis.dynamics.bifurcation import bifurcation, classify
from analysis.dynamics.lyapunov import lyapunov_spectrum
from analysis.model import Model
from analysis.simulation.simulate import sensitivities, simulate
from benchmarks.measure import Measurement, median_times
from drivers.library import load_model

PERIOD = 2 * np.pi / 1.33
FORCES = np.linspace(5.0, 35.0, 300)
PERIODS, KEPT, STEPS, LONG = 300, 100, 200, 500
START = (1.0, 0.0)


def measure() -> list[Measurement]:
    try:
        import heyoka
    except ModuleNotFoundError:
        heyoka = None
    return [*_diagram(heyoka), *_trajectory(heyoka), _sensitivities(), _stiff(), _spectrum()]


def _rhs(t: float, y: np.ndarray, force: float = 27.0) -> list[float]:
    return [y[1], -0.2 * y[1] - y[0] - y[0] ** 3 + force * np.cos(1.33 * t)]


def _scipy_seconds(periods: int, force: float = 27.0, rtol: float = 1e-9) -> float:
    begin = time.process_time()
    solve_ivp(
        _rhs, (0, periods * PERIOD), START, method="DOP853", rtol=rtol, atol=1e-12, args=(force,),
        t_eval=np.arange(periods + 1) * PERIOD,
    )  # fmt: skip
    return time.process_time() - begin


def _diagram(heyoka: Any) -> list[Measurement]:
    model = load_model("duffing")

    def ours() -> Any:
        return bifurcation(model, "a", FORCES, PERIOD, PERIODS - KEPT, KEPT, steps=STEPS)

    runs: dict[str, Any] = {"ours": ours}
    if heyoka is not None:
        runs["heyoka"] = _heyoka_diagram(heyoka)
    times = median_times(runs, 3)
    rows, work = [], "diagram 300 x 300 x 200"
    if heyoka is None:
        rows.append(Measurement(work, "heyoka batch", None, times["ours"], note="not installed"))
    else:
        agrees, note = _same_periods(ours().periods, classify(runs["heyoka"]()))
        rows.append(Measurement(work, "heyoka batch", times["heyoka"], times["ours"], agrees, 3.0, note))
    some = [5.0, 15.0, 27.0, 33.0]
    seconds = sum(_scipy_seconds(3, force) for force in some) / (3 * len(some)) * len(FORCES) * PERIODS
    note = "SciPy on 12 of 90 000 periods"
    return [*rows, Measurement(work, "SciPy DOP853", seconds, times["ours"], None, 1000.0, note)]


def _heyoka_diagram(heyoka: Any) -> Any:
    x, v = heyoka.make_vars("x", "v")
    lanes = 4
    drive = heyoka.par[0] * heyoka.cos(1.33 * heyoka.time)
    system = [(x, v), (v, -0.2 * v - x - x**3 + drive)]
    integrator = heyoka.taylor_adaptive_batch(
        system, np.ones((2, lanes)), tol=1e-9, pars=np.zeros((1, lanes))
    )
    grid = np.repeat((np.arange(PERIODS + 1) * PERIOD)[:, None], lanes, axis=1)

    def run() -> np.ndarray:
        points = np.empty((2, KEPT, len(FORCES)))
        for first in range(0, len(FORCES), lanes):
            integrator.set_time(0.0)
            integrator.state[:] = np.array(START)[:, None]
            integrator.pars[:] = FORCES[first : first + lanes]
            result = integrator.propagate_grid(grid)
            states = result[-1] if isinstance(result, tuple) else result
            points[:, :, first : first + lanes] = np.moveaxis(states[-KEPT:], 0, 1)
        return points

    return run


def _same_periods(ours: np.ndarray, theirs: np.ndarray) -> tuple[bool, str]:
    """Chaotic lanes follow different paths and may fall into a window late: those that settled must agree."""
    settled = (ours > 0) & (theirs > 0)
    same = int(np.sum(ours[settled] == theirs[settled]))
    either = int(np.sum((ours > 0) | (theirs > 0)))
    note = f"periods equal in {same} of {int(settled.sum())} settled in both, {either} in either"
    return bool(same >= 0.99 * settled.sum() and settled.sum() >= 0.9 * either), note


def _trajectory(heyoka: Any) -> list[Measurement]:
    model = load_model("duffing")
    moments = np.arange(LONG + 1) * PERIOD

    def ours() -> Any:
        return simulate(model, moments, START, rtol=1e-9)

    simulate(
        model, np.arange(4 * LONG) * PERIOD, START
    )  # a long run makes the model's own step worth compiling
    runs: dict[str, Any] = {"ours": ours}
    if heyoka is not None:
        x, v = heyoka.make_vars("x", "v")
        system = [(x, v), (v, -0.2 * v - x - x**3 + 27.0 * heyoka.cos(1.33 * heyoka.time))]
        integrator = heyoka.taylor_adaptive(system, list(START), tol=1e-9)

        def theirs() -> Any:
            integrator.time = 0.0
            integrator.state[:] = START
            return integrator.propagate_grid(moments)[-1]

        runs["heyoka"] = theirs
    times = median_times(runs, 15)
    truth = solve_ivp(
        _rhs, (0, 4 * PERIOD), START, method="DOP853", rtol=1e-13, atol=1e-14, t_eval=moments[:5]
    ).y
    error = float(np.abs(ours().states[:, :5] - truth).max())
    work, agrees = "500 periods at 1e-9", error < 1e-5
    rows = []
    if heyoka is None:
        rows.append(Measurement(work, "heyoka", None, times["ours"], agrees, note="not installed"))
    else:
        other = float(np.abs(theirs()[:5].T - truth).max())
        note = f"error after 4 periods {error:.1e}, heyoka {other:.1e}"
        rows.append(Measurement(work, "heyoka", times["heyoka"], times["ours"], agrees, 0.5, note))
    seconds = _scipy_seconds(10) / 10 * LONG
    note = "SciPy on 10 of 500 periods"
    return [*rows, Measurement(work, "SciPy DOP853", seconds, times["ours"], agrees, None, note)]


def _sensitivities() -> Measurement:
    """A van der Pol-Duffing run as the homotopy method makes it, again and again."""
    model = load_model("van_der_pol_duffing_single_well")
    moments = np.linspace(0, 20, 2001)

    def ours() -> Any:
        return sensitivities(model, moments, wrt=["alpha", "beta", "mu"], method="rk4")

    def rhs(t: float, y: np.ndarray) -> np.ndarray:
        x, v, s = y[0], y[1], y[2:].reshape(2, 3)
        a, b, mu = 0.5, 0.5, 0.1
        slope = [v, mu * (1 - x * x) * v - a * x - b * x**3 + 0.5 * np.cos(0.79 * t)]
        jx = np.array([[0.0, 1.0], [-2 * mu * x * v - a - 3 * b * x * x, mu * (1 - x * x)]])
        jp = np.array([[0.0, 0.0, 0.0], [-x, -(x**3), (1 - x * x) * v]])
        return np.concatenate([slope, (jx @ s + jp).ravel()])

    begin = time.process_time()
    truth = solve_ivp(
        rhs, (0, 20), [1.0, 0.0, *[0.0] * 6], method="DOP853", rtol=1e-8, atol=1e-10, t_eval=moments
    ).y
    seconds = time.process_time() - begin
    states, s = ours()
    error = max(np.abs(states - truth[:2]).max(), np.abs(s.reshape(6, -1) - truth[2:]).max())
    our_seconds = median_times({"ours": ours}, 31)["ours"]
    note = f"{1e3 * our_seconds:.2f} ms, largest difference {error:.0e}"
    work = "sensitivities 2000 x 3"
    return Measurement(work, "SciPy DOP853", seconds, our_seconds, bool(error < 1e-4), 20.0, note)


def _stiff() -> Measurement:
    """A Duffing oscillator driven through an actuator 10 000 times faster than its motion."""
    tau = 1e-4
    model = Model.from_equations(
        {"x": "v", "v": "-0.2*v - x - x**3 + a", "a": "(3*cos(1.3*t) - a)/tau"}, {"tau": tau}
    )
    start, moments = [1.0, 0.0, 0.0], np.linspace(0, 15, 301)

    def rhs(t: float, y: np.ndarray) -> list[float]:
        return [y[1], -0.2 * y[1] - y[0] - y[0] ** 3 + y[2], (3 * np.cos(1.3 * t) - y[2]) / tau]

    def jacobian(t: float, y: np.ndarray) -> list[list[float]]:
        return [[0, 1, 0], [-1 - 3 * y[0] ** 2, -0.2, 1], [0, 0, -1 / tau]]

    def theirs(rtol: float) -> np.ndarray:
        return solve_ivp(
            rhs, (0, 15), start, "Radau", moments, jac=jacobian, rtol=rtol, atol=1e-3 * rtol
        ).y  # fmt: skip

    truth = theirs(1e-10)
    begin = time.process_time()
    scipy_error = np.abs(theirs(1e-9) - truth).max()
    seconds = time.process_time() - begin
    error = np.abs(simulate(model, moments, start).states - truth).max()
    ours = median_times({"ours": lambda: simulate(model, moments, start)}, 9)["ours"]
    note = f"{1e3 * ours:.1f} ms; error {error:.0e}, SciPy {scipy_error:.0e}"
    return Measurement("stiff actuator at 1e-9", "SciPy Radau", seconds, ours, bool(error < 1e-6), 20.0, note)


def _spectrum() -> Measurement:
    """The full Lyapunov spectrum of the Lorenz system; no peer in Python computes it from equations."""
    lorenz = load_model("lorenz")
    lyapunov_spectrum(lorenz, 10.0)
    begin = time.process_time()
    spectrum = lyapunov_spectrum(lorenz, 2000.0, 20.0)
    seconds = time.process_time() - begin
    right = bool(np.all(np.abs(spectrum.bits - [2.17, 0.0, -32.46]) < 0.04))
    return Measurement("Lorenz spectrum over 2000", "published", None, seconds, right, note=str(spectrum))
