"""Exponents, dimensions, false neighbours and orbits from data, against nolds, neurokit2, teaspoon and NumPy.

All run on the same samples with the same settings in one process, so that the ratios hold on a busy machine.
nolds wants 8 GB of memory for 20 000 samples: set SAMPLES lower where there is less.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
import tracemalloc
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from analysis.orbits.forced import forced_orbits
from analysis.reconstruct.dimension import correlation_dimension, false_neighbours
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.exponents import largest_exponent
from analysis.reconstruct.neighbours import build_tree, pair_counts
from analysis.simulation.simulate import simulate
from benchmarks.measure import Measurement
from drivers.library import load_model

SAMPLES = int(os.environ.get("SAMPLES", "20000"))
DELAY = 17  # samples: the first minimum of the mutual information of Lorenz's x at 0.01
RIGHT_DIMENSION = 3
GROWTH = Path(__file__).parents[1] / "docs" / "images" / "neighbours-growth.png"


def measure(quick: bool = False) -> list[Measurement]:
    """All rows; ``quick`` on a fifth of the samples, without growth and orbits."""
    x = _lorenz(SAMPLES // 5 if quick else SAMPLES)
    rows = [_exponent(x), _correlation(x), *_false_neighbours(x)]
    return rows if quick else [*rows, *_growth(), *_orbits()]


def _lorenz(samples: int) -> np.ndarray:
    values = {"sigma": 10.0, "rho": 28.0, "beta": 8 / 3}
    times = np.arange(samples + 2000) * 0.01
    motion = simulate(load_model("lorenz"), times, [1.0, 1.0, 20.0], values, rtol=1e-8, atol=1e-8)
    return np.ascontiguousarray(motion.states[0, 2000:])


def _duffing(samples: int) -> np.ndarray:
    times = np.arange(samples) * 2 * np.pi / 1.33 / 100
    motion = simulate(load_model("duffing"), times, [0.5, 0.0], rtol=1e-7, atol=1e-9)
    return np.ascontiguousarray(motion.states[:2])


def _timed(work: Callable[[], Any], repeats: int = 1) -> tuple[float, Any]:
    """Least processor time, and the answer."""
    best, value = np.inf, None
    for _ in range(repeats):
        begin = time.process_time()
        value = work()
        best = min(best, time.process_time() - begin)
    return best, value


def _nolds() -> Any:
    """nolds.measures; the package itself does not import on every Python, its functions do."""
    found = importlib.util.find_spec("numpy")
    root = Path(found.origin).parents[1] / "nolds" if found and found.origin else Path("nolds")
    if not root.exists():
        return None
    if "nolds" not in sys.modules:
        package = types.ModuleType("nolds")
        package.__path__ = [str(root)]
        sys.modules["nolds"] = package
    return importlib.import_module("nolds.measures")


def _peer(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None


def _exponent(x: np.ndarray) -> Measurement:
    """Rosenstein's exponent with the settings of nolds: 10 coordinates, 20 steps, all pairs, a plain line."""
    lag, theiler, steps = 3, 155, 20

    def ours() -> float:
        points = delay_coordinates(x, 10, lag)
        whole = (0.0, 1.0)
        return largest_exponent(
            points, 0.01, theiler=theiler, horizon=steps, closest=1.0, noise=0.0, region=whole
        ).value

    def theirs() -> float:
        settings = {"emb_dim": 10, "lag": lag, "min_tsep": theiler, "trajectory_len": steps}
        return float(_nolds().lyap_r(x, tau=0.01, fit="poly", **settings))

    ours()
    seconds, value = _timed(ours, 5)
    work = f"largest exponent, N = {len(x)}"
    if _nolds() is None:
        return Measurement(work, "nolds.lyap_r", None, seconds, note=f"{value:.5f}")
    taken, other = _timed(theirs)
    agrees = abs(value / other - 1) < 5e-4
    return Measurement(work, "nolds.lyap_r", taken, seconds, agrees, 200, f"{value:.5f} and {other:.5f}")


def _correlation(x: np.ndarray) -> Measurement:
    """Correlation sums over all pairs at the radii of nolds, and the slope over all of them."""
    dimension, lag = 5, DELAY
    radii = 0.1 * float(np.std(x, ddof=1)) * 1.03 ** np.arange(int(np.log(5) / np.log(1.03)) + 1)

    def ours() -> float:
        counts, _ = pair_counts(build_tree(delay_coordinates(x, dimension, lag)), radii, 0)
        both = 2 * counts + len(x) - (dimension - 1) * lag  # nolds counts each point as its own neighbour
        return float(np.polyfit(np.log(radii), np.log(both), 1)[0])

    ours()
    seconds, value = _timed(ours, 5)
    work = f"correlation dimension, N = {len(x)}"
    if _nolds() is None:
        return Measurement(work, "nolds.corr_dim", None, seconds, note=f"{value:.5f}")
    taken, other = _timed(lambda: float(_nolds().corr_dim(x, dimension, lag=lag, fit="poly")))
    agrees = abs(value / other - 1) < 5e-4
    return Measurement(work, "nolds.corr_dim", taken, seconds, agrees, 100, f"{value:.5f} and {other:.5f}")


def _false_neighbours(x: np.ndarray) -> list[Measurement]:
    def ours() -> int:
        return false_neighbours(x, DELAY, noise=0.0).dimension

    def by_neurokit() -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            peer = _peer("neurokit2")
            return int(peer.complexity_dimension(x, delay=DELAY, dimension_max=5, method="fnn")[0])

    def by_teaspoon() -> int:
        return int(_peer("teaspoon.parameter_selection.FNN_n").FNN_n(x, DELAY, threshold=1)[1])

    ours()
    seconds, value = _timed(ours, 5)
    rows = []
    for name, module, work in (
        ("neurokit2", "neurokit2", by_neurokit),
        ("teaspoon", "teaspoon.parameter_selection.FNN_n", by_teaspoon),
    ):
        title = f"false neighbours, N = {len(x)}"
        right = value == RIGHT_DIMENSION
        if _peer(module) is None:
            rows.append(Measurement(title, name, None, seconds, right))
            continue
        taken, other = _timed(work)
        wanted = 5 if other == RIGHT_DIMENSION else None  # a peer with a wrong answer sets no mark
        rows.append(Measurement(title, name, taken, seconds, right, wanted, f"{value} and {other}"))
    return rows


def _growth() -> list[Measurement]:
    """Our times as the record grows: N log N would be 12 to 13 times as much for ten times the samples."""
    rows = []
    taken: dict[str, dict[int, float]] = {}
    for samples in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        x = _lorenz(samples)
        points = delay_coordinates(x, 3, DELAY)
        tasks: dict[str, Callable[[], float]] = {
            "largest exponent": lambda p=points: largest_exponent(p, 0.01, horizon=400).value,
            "false neighbours": lambda y=x: false_neighbours(y, DELAY, noise=0.0).dimension,
            "correlation dimension": lambda p=points: correlation_dimension(p).value,
        }
        for name, work in tasks.items():
            seconds, value = _timed(work, 3 if samples <= 100_000 else 1)
            times = taken.setdefault(name, {})
            before = times.get(samples // 10)
            grown = f", {seconds / before:.1f} times that of N/10" if before else ""
            rows.append(Measurement(f"{name}, N = {samples}", "-", None, seconds, note=f"{value:.4g}{grown}"))
            times[samples] = seconds
    _draw_growth(taken)
    return rows


def _draw_growth(taken: dict[str, dict[int, float]]) -> None:
    """The figure of the manual."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    for name, times in taken.items():
        axis.loglog(list(times), list(times.values()), "o-", label=name)
    sizes = np.array([1e4, 1e6])
    first = min(times[10_000] for times in taken.values())
    axis.loglog(sizes, 0.5 * first * sizes * np.log(sizes) / (1e4 * np.log(1e4)), "k:", label="N log N")
    axis.set(xlabel="samples N", ylabel="processor time [s]")
    axis.legend(frameon=False)
    figure.savefig(GROWTH, dpi=110)
    pyplot.close(figure)


def _orbits() -> list[Measurement]:
    """Periods 1 to 20 of a forced record of a million samples, against differences of all pairs in NumPy."""
    record = _duffing(1_000_000)

    def ours() -> Any:
        return forced_orbits(record, 100.0, maps=False)

    ours()
    seconds, found = _timed(ours, 3)
    tracemalloc.start()
    ours()
    peak = tracemalloc.get_traced_memory()[1] / record.nbytes
    tracemalloc.stop()
    share = 1000
    taken, _ = _timed(lambda: _pairs(record, share))
    whole = taken * record.shape[1] / share
    with_maps, _ = _timed(lambda: forced_orbits(record, 100.0))
    note = f"{len(found)} orbits, memory {peak:.1f} times the record's; pairs from {share} of the points"
    work = "orbits of period 1 to 20, N = 1000000"
    return [
        Measurement(work, "NumPy, all pairs", whole, seconds, peak < 20, 50, note),
        Measurement(f"{work}, with multipliers", "-", None, with_maps),
    ]


def _pairs(record: np.ndarray, rows: int) -> int:
    """Close pairs of the first points with all others, a block at a time."""
    scaled = record / np.ptp(record, axis=1)[:, None]
    close = 0
    for start in range(0, rows, 50):
        block = scaled[:, start : start + 50, None]
        square = sum((block[c] - scaled[c]) ** 2 for c in range(len(scaled)))
        close += int(np.sum(square < 2 * 0.005**2))
    return close


if __name__ == "__main__":
    for row in measure():
        print(row)
