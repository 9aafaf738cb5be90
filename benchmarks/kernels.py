"""Compiled kernels against SymPy's lambdify with NumPy: the 12-state Chua model over 100 000 samples.

`python -m benchmarks kernels`. All compute the right-hand side and every entry of the parameter Jacobian that
is not zero by structure (48 numbers a sample), from the same equations. lambdify is given as it comes, and
with its elimination of common sub-expressions. Each is run in one call, which writes 38 MB and is bound by
memory, and in blocks whose results stay in the cache, as a method uses them that sums over samples.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from analysis.model import Model
from analysis.model.grammar import Expression
from benchmarks.measure import Measurement
from drivers.library import load_model

SAMPLES = 100_000
BLOCKS = (100_000, 10_000, 1_000)
REPEATS = 9
OURS = "Shakedown"
WORK = "Chua, right-hand side and Jacobian, 100 000 samples"
_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "neg": lambda a: -a,
}


def measure() -> list[Measurement]:
    """Medians of processor time, alternating, so that a busy machine slows all alike."""
    model = load_model("chua")
    states = np.random.default_rng(1).normal(size=(len(model.states), SAMPLES))
    makers: dict[str, Callable[[np.ndarray], Callable[[], np.ndarray]]] = {
        OURS: lambda x: _kernel(model, x),
        "SymPy lambdify": lambda x: _lambdified(model, x, cse=False),
        "SymPy lambdify, cse": lambda x: _lambdified(model, x, cse=True),
    }
    runs = {
        (name, block): make(np.ascontiguousarray(states[:, :block]))
        for block in BLOCKS
        for name, make in makers.items()
    }
    seconds: dict[tuple[str, int], list[float]] = {key: [] for key in runs}
    for _ in range(REPEATS):
        for key, run in runs.items():
            begin = time.process_time()
            for _ in range(SAMPLES // key[1]):
                run()
            seconds[key].append(time.process_time() - begin)
    medians = {key: statistics.median(taken) for key, taken in seconds.items()}
    agrees = _agree(runs)
    rows = []
    best = min(medians[OURS, block] for block in BLOCKS)
    for peer in list(makers)[1:]:
        for block in BLOCKS:
            calls = f"in {SAMPLES // block} calls" if block < SAMPLES else "in one call"
            work, theirs, ours = f"{WORK}, {calls}", medians[peer, block], medians[OURS, block]
            rows.append(Measurement(work, peer, theirs, ours, agrees))
        theirs = min(medians[peer, block] for block in BLOCKS)
        rows.append(Measurement(f"{WORK}, each in its best blocks", peer, theirs, best, agrees))
        work = f"{WORK}, ours in its blocks, the peer in one call"  # as each is used
        rows.append(Measurement(work, peer, medians[peer, SAMPLES], best, agrees, 20.0))
    return rows


def _agree(runs: dict[tuple[str, int], Callable[[], np.ndarray]]) -> bool:
    """All methods give the same numbers."""
    results = [run() for (_, block), run in runs.items() if block == BLOCKS[-1]]
    return all(np.allclose(other, results[0], rtol=1e-9, atol=1e-9) for other in results[1:])


def _kernel(model: Model, states: np.ndarray) -> Callable[[], np.ndarray]:
    kernels = model.kernels()
    kernel = kernels.jac_p_sparse_many
    n, count = states.shape
    result = np.empty((n + kernels.pattern_p.shape[1], count))
    times, inputs, values = np.zeros(count), np.empty((0, count)), model.values()

    def run() -> np.ndarray:
        kernel(times, states, inputs, values, result[:n], result[n:])
        return result

    return run


def _lambdified(model: Model, states: np.ndarray, cse: bool) -> Callable[[], np.ndarray]:
    symbols = {name: sympy.Symbol(name, real=True) for name in (*model.states, *model.parameters)}
    known: dict[str, Any] = dict(symbols)
    for name, item in model.equations.definitions.items():
        assert isinstance(item, Expression)
        known[name] = _sympy(item, known)
    rhs = sympy.Matrix([_sympy(e, known) for e in model.equations.states.values()])
    jacobian = rhs.jacobian([symbols[name] for name in model.parameters])
    rows, columns = model.kernels().pattern_p
    entries = [*rhs, *(jacobian[int(i), int(j)] for i, j in zip(rows, columns, strict=True))]
    function = sympy.lambdify(list(symbols.values()), entries, "numpy", cse=cse)
    result = np.empty((len(entries), states.shape[1]))
    values = model.values()

    def run() -> np.ndarray:
        for row, entry in zip(result, function(*states, *values), strict=True):
            row[:] = entry
        return result

    return run


def _sympy(expression: Expression, known: dict[str, Any]) -> Any:
    built: list[Any] = []
    for node in expression.nodes:
        args = [built[i] for i in node.args]
        if node.kind == "number":
            built.append(sympy.nsimplify(node.value))
        elif node.kind == "name":
            built.append(known[str(node.value)])
        elif node.kind == "call":
            built.append({"abs": sympy.Abs}[str(node.value)](*args))
        else:
            built.append(_OPERATORS[node.kind](*args))
    return built[-1]
