"""The true record of a stranger: its equations read by Python itself and integrated by SciPy.

Nothing of the program takes part in the motion: neither its reader of equations, nor its integrators.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from analysis.base.record import Channel, Record
from benchmarks.strangers.system import System

Array = NDArray[np.float64]
Function = Callable[[float], float]

RTOL = 1e-9
LINES = 40  # of a multisine
_NAMES: dict[str, Any] = {
    **{f: getattr(math, f) for f in ("sin", "cos", "tan", "tanh", "exp", "log", "sqrt", "atan2", "pi")},
    "abs": abs, "min": min, "max": max, "where": lambda condition, yes, no: yes if condition else no,
    "sign": lambda x: float(x > 0) - float(x < 0), "heaviside": lambda x: float(x > 0),
}  # fmt: skip


def true_record(system: System, seed: int) -> Record:
    """The record without noise; the drive is drawn anew with each seed."""
    rng = np.random.default_rng([seed, *system.name.encode()])
    text = tomllib.loads(system.model)
    times = np.arange(system.samples) / system.rate
    drives = _drives(system, rng)
    rate, outputs = _functions(text, system.truth)
    if system.dry:
        states = stick_slip(system, text, drives, times)
    else:
        states = _motion(system, rate, drives, times)
    shown = system.sensors or list(text.get("outputs", text["states"]))
    columns = {name: np.empty(len(times)) for name in outputs}
    for k, t in enumerate(times):
        u = [f(t) for f in drives.values()]
        for name, value in zip(outputs, outputs_at(outputs, t, states[:, k], u), strict=True):
            columns[name][k] = value
    channels = {name: columns[name] for name in shown}
    channels |= {name: np.array([f(t) for t in times]) for name, f in drives.items()}
    return Record.from_arrays(system.rate, channels)


def outputs_at(outputs: dict[str, Any], t: float, x: Array, u: list[float]) -> list[float]:
    return [function(t, x, u) for function in outputs.values()]


def measured(system: System, record: Record, level: float, seed: int) -> Record:
    """The record as it is brought: noise of ``level`` of each channel's spread, and the system's troubles."""
    rng = np.random.default_rng([seed, 7, round(1e4 * level)])
    arrays, gaps = {}, {}
    for name in record.names:
        data, spread = record[name], float(np.std(record[name]))
        if name in system.drive:
            arrays[name] = data + system.input_noise * level * spread * rng.standard_normal(len(data))
            continue
        noisy = data + level * spread * rng.standard_normal(len(data))
        for place in rng.choice(len(data), system.spikes, replace=False):
            noisy[place] += rng.choice([-1.0, 1.0]) * rng.uniform(3, 10) * spread
        lost = round(system.gap * record.rate)
        if lost:
            first = int(rng.integers(len(data) // 5, 3 * len(data) // 5))
            noisy[first : first + lost] = noisy[first]
            gaps[name] = ((first, first + lost),)
        arrays[name] = noisy
    channels = {name: Channel(data, "", gaps.get(name, ())) for name, data in arrays.items()}
    return Record(record.rate, channels)


def _drives(system: System, rng: np.random.Generator) -> dict[str, Function]:
    drives: dict[str, Function] = {}
    slopes: dict[str, Function] = {}
    for name, kind in system.drive.items():
        if kind["kind"] == "multisine":
            drives[name], slopes[name] = _multisine(kind, rng)
        elif kind["kind"] == "sine":
            a, w = kind["amplitude"], 2 * np.pi * kind["frequency"]
            drives[name] = lambda t, a=a, w=w: a * math.cos(w * t)
        elif kind["kind"] == "held":
            samples = kind["rms"] * rng.standard_normal(system.samples + 1)
            drives[name] = lambda t, s=samples: float(s[min(int(t * system.rate + 1e-6), len(s) - 1)])
        else:
            drives[name] = slopes[kind["of"]]
    return drives


def _multisine(kind: dict[str, Any], rng: np.random.Generator) -> tuple[Function, Function]:
    w = 2 * np.pi * np.sort(rng.uniform(kind["low"], kind["high"], LINES))
    phase = rng.uniform(0, 2 * np.pi, LINES)
    a = kind["rms"] * math.sqrt(2.0 / LINES)
    return (
        lambda t: float(a * np.cos(w * t + phase).sum()),
        lambda t: float(-a * (w * np.sin(w * t + phase)).sum()),
    )


def stick_slip(system: System, text: dict[str, Any], drives: dict[str, Function], times: Array) -> Array:
    """Motion under dry friction, sign(v): smooth equations while v keeps its sign, and rest in between.

    At v = 0 the motion sticks while the slopes of v on both sides point towards zero (Filippov 1988); each
    phase ends at an event that SciPy finds. A step across sign(v) would keep no order, and chatter at rest.
    """
    drive, place = list(drives.values()), list(text["states"]).index(system.dry)
    states = {n: e.replace(f"sign({system.dry})", "(_side)") for n, e in text["states"].items()}
    phases = {
        side: _functions({**text, "states": states, "_side": side}, system.truth)[0] for side in (1.0, -1.0)
    }

    def slope(t: float, x: Array, side: float) -> Array:
        return np.array(phases[side](t, x, [f(t) for f in drive]))

    def at_rest(t: float, x: Array) -> Array:
        found = 0.5 * (slope(t, x, 1.0) + slope(t, x, -1.0))
        found[place] = 0.0
        return found

    def upwards(t: float, x: Array, side: float) -> float:
        return float(slope(t, x, side)[place])

    result = np.empty((len(states), len(times)))
    t, x, done = float(times[0]), np.array(system.initial, dtype=np.float64), 0
    side = float(np.sign(x[place]))
    while done < len(times):
        if side == 0.0:
            side = 1.0 if upwards(t, x, 1.0) > 0 else -1.0 if upwards(t, x, -1.0) < 0 else 0.0
        if side == 0.0:
            events = [lambda t, x: -upwards(t, x, 1.0), lambda t, x: upwards(t, x, -1.0)]
            function: Any = at_rest
        else:
            events = [lambda t, x, side=side, begin=t: side * x[place] if t > begin + 1e-9 else 1.0]
            function = lambda t, x, side=side: slope(t, x, side)  # noqa: E731
        for event in events:
            event.terminal, event.direction = True, -1.0  # type: ignore[attr-defined]
        found = solve_ivp(
            function, (t, times[-1] + 1.0 / system.rate), x, "DOP853", dense_output=True,
            events=events, rtol=RTOL, atol=1e-10, max_step=0.25 / system.rate,
        )  # fmt: skip
        t, x = float(found.t[-1]), np.array(found.y[:, -1])
        until = int(np.searchsorted(times, t, side="right"))
        if until > done:  # a stick and a slip within one sample interval show no sample
            result[:, done:until] = found.sol(times[done:until])
        done = until
        if side == 0.0:
            side = 1.0 if len(found.t_events[0]) else -1.0
        else:
            x[place], side = 0.0, 0.0
    return result


def _functions(text: dict[str, Any], truth: dict[str, float]) -> tuple[Any, dict[str, Any]]:
    """dx/dt (t, x, u) and the outputs as Python functions of the texts of the model file."""
    states = list(text["states"])
    inputs = text.get("inputs", {})
    measured_inputs = [n for n, e in inputs.items() if e == "measured"]
    constants = {}
    for name, given in text.get("parameters", {}).items():
        constants[name] = given if not isinstance(given, dict) else given.get("value")
    constants |= truth
    head = [f"    {n} = _x[{i}]" for i, n in enumerate(states)]
    head += [f"    {n} = _u[{i}]" for i, n in enumerate(measured_inputs)]
    head += [f"    {n} = {e}" for n, e in inputs.items() if e != "measured"]
    head += [f"    {n} = {e}" for n, e in text.get("definitions", {}).items()]
    scope = {**_NAMES, **constants, "_side": text.get("_side", math.nan)}

    def function(name: str, expression: str) -> Any:
        source = "\n".join([f"def {name}(t, _x, _u):", *head, f"    return {expression.replace('^', '**')}"])
        exec(compile(source, name, "exec"), scope)
        return scope[name]

    rate = function("rate_of_change", "[" + ", ".join(text["states"].values()) + "]")
    shown = text.get("outputs", {name: name for name in states})
    return rate, {name: function(f"output_{name}", expression) for name, expression in shown.items()}


def _motion(system: System, rate: Any, drives: dict[str, Function], times: Array) -> Array:
    drive = list(drives.values())
    start = np.array(system.initial, dtype=np.float64)
    options: dict[str, Any] = {
        "method": "Radau" if system.stiff else "DOP853",
        "rtol": 1e-7 if system.stiff else RTOL,
        "atol": 1e-10 * np.array(system.scale or [1.0] * len(start)),
        "max_step": system.max_step,
    }
    if any(kind["kind"] == "held" for kind in system.drive.values()):
        return _interval_by_interval(rate, drive, times, start, options)

    def slope(t: float, x: Array) -> list[float]:
        return rate(t, x, [f(t) for f in drive])  # type: ignore[no-any-return]

    if system.settle:
        start = solve_ivp(slope, (-system.settle, 0.0), start, **options).y[:, -1]
    return np.asarray(solve_ivp(slope, (0.0, times[-1]), start, t_eval=times, **options).y)


def _interval_by_interval(
    rate: Any, drive: list[Function], times: Array, start: Array, options: dict[str, Any]
) -> Array:
    """A held drive: integrate each sample interval by itself, so that no step crosses a jump."""
    states = np.empty((len(start), len(times)))
    states[:, 0] = start
    for k in range(len(times) - 1):
        u = [f(times[k]) for f in drive]
        span = (times[k], times[k + 1])
        states[:, k + 1] = solve_ivp(lambda t, x, u=u: rate(t, x, u), span, states[:, k], **options).y[:, -1]
    return states
