"""How often the equation is found: exact sets of terms, coverage after the choice, terms outside the library.

`python -m benchmarks.discovery [--case NAME] [--first 0] [--seeds 10] [--cluster WHERE]`. Data are integrated
by SciPy, not by this program; noise is given in per cent of each channel's standard deviation. The draws are
done by the engine of campaigns, on all processors or on a Dask cluster.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import ShakedownError
from analysis.base.record import Excitation, Record
from analysis.estimate.discovery.library import Library, monomials, oscillator, system
from analysis.estimate.discovery.selection import select_terms
from app.campaign.calls import draws
from app.output import terminal_progress

Array = NDArray[np.float64]
Truth = dict[tuple[str, str], float]  # coefficient by state and term

LORENZ: Truth = {
    ("x", "x"): -10.0,
    ("x", "y"): 10.0,
    ("y", "x"): 28.0,
    ("y", "y"): -1.0,
    ("y", "x*z"): -1.0,
    ("z", "z"): -8 / 3,
    ("z", "x*y"): 1.0,
}
DUFFING: Truth = {("v", "x"): -1.0, ("v", "x**3"): 1.0, ("v", "v"): 0.3}
VAN_DER_POL: Truth = {("v", "x"): 1.0, ("v", "v"): -1.5, ("v", "x**2*v"): 1.5}
OTHERS = ("v*abs(v)", "tanh(20*v)")  # beside the polynomials of degree five: 23 terms
DRIVE = 1.2  # rad/s


@dataclass(frozen=True)
class Case:
    """A system, its library and the noise."""

    library: Callable[[], Library]
    truth: Truth  # empty: the library lacks a term, which must be noticed
    record: Callable[[np.random.Generator, float], Record]
    noise: float  # of a channel's standard deviation


def lorenz(rng: np.random.Generator, noise: float, extra: float = 0.0) -> Record:
    """10 000 samples of all states; ``extra``: a force extra*sin(x) in dy/dt that no polynomial holds."""

    def rate(_: float, u: Array) -> list[float]:
        x, y, z = u
        return [10 * (y - x), x * (28 - z) - y + extra * math.sin(x), x * y - 8 / 3 * z]

    return _measured(rate, rng, noise, 0.01, 10_000, 2_000, ["x", "y", "z"], rng.normal(size=3) * 5 + 10)


def two_well(rng: np.random.Generator, noise: float, extra: float = 0.0) -> Record:
    """Displacement alone, 6000 samples, 60 in a period of the drive."""

    def rate(t: float, u: Array) -> list[float]:
        x, v = u
        force = 0.5 * math.cos(DRIVE * t) - extra * x * abs(x)
        return [v, force - 0.3 * v + x - x**3]

    step = 2 * math.pi / DRIVE / 60
    tone = Excitation(DRIVE / (2 * math.pi), 0.5, 0.0)
    return _measured(rate, rng, noise, step, 6_000, 3_000, ["x"], rng.normal(size=2), tone)


def van_der_pol(rng: np.random.Generator, noise: float) -> Record:
    """Displacement alone, 6000 samples, about 70 in a period."""

    def rate(_: float, u: Array) -> list[float]:
        return [u[1], 1.5 * (1 - u[0] ** 2) * u[1] - u[0]]

    return _measured(rate, rng, noise, 0.1, 6_000, 1_000, ["x"], rng.normal(size=2))


def _measured(
    rate: Callable[[float, Array], list[float]],
    rng: np.random.Generator,
    noise: float,
    step: float,
    samples: int,
    before: int,
    names: list[str],
    start: Array,
    tone: Excitation | None = None,
) -> Record:
    from scipy.integrate import solve_ivp

    times = step * np.arange(before, before + samples)
    found = solve_ivp(rate, (0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-10).y
    rows = {n: x + noise * x.std() * rng.normal(size=samples) for n, x in zip(names, found, strict=False)}
    return Record.from_arrays(1 / step, rows, excitation=tone)


def _polynomials(degree: int) -> Library:
    return system(dict.fromkeys("xyz", "?"), monomials("xyz", degree))


def _oscillator(driven: bool) -> Library:
    terms = [*monomials("xv", 5), *OTHERS]
    return oscillator(terms, "tone", {"w": DRIVE}, keep=()) if driven else oscillator(terms, keep=())


CASES: dict[str, Case] = {
    **{
        f"lorenz-degree-{degree}-{percent}": Case(
            lambda degree=degree: _polynomials(degree),  # type: ignore[misc]
            LORENZ,
            lorenz,
            percent / 100,
        )
        for degree in (2, 3)
        for percent in (5, 10, 20, 30, 40)
    },
    **{
        f"two-well-{percent}": Case(lambda: _oscillator(True), DUFFING, two_well, percent / 100)
        for percent in (1, 5, 10)
    },
    **{
        f"van-der-pol-{percent}": Case(lambda: _oscillator(False), VAN_DER_POL, van_der_pol, percent / 100)
        for percent in (1, 5, 10)
    },
    "lorenz-lacks-sine": Case(lambda: _polynomials(2), {}, lambda rng, s: lorenz(rng, s, 2.0), 0.05),
    "two-well-lacks-x|x|": Case(
        lambda: oscillator(["1", "x", "x**3", "v", "v**3"], "tone", {"w": DRIVE}, keep=()),
        {},
        lambda rng, s: two_well(rng, s, 0.15),
        0.01,
    ),
}


def draw(name: str, seed: int) -> dict[str, object]:
    """One record, one search: what came out, as JSON values."""
    case = CASES[name]
    library = case.library()
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])  # cases share no noise
    record = case.record(rng, case.noise)
    begin = time.process_time()
    try:
        found = select_terms(library, record)
    except ShakedownError as error:
        return {"case": name, "seed": seed, "error": str(error)}
    seconds = time.process_time() - begin
    kept = {(library.candidates[n].state, library.candidates[n].term): n for n in found.kept}
    covered = [
        found.result.parameters[n].covers(case.truth[term]) for term, n in kept.items() if term in case.truth
    ]
    sure = [n for n, p in found.probability.items() if p > 0.99]
    right = [(library.candidates[n].state, library.candidates[n].term) in case.truth for n in sure]
    return {
        "case": name,
        "seed": seed,
        "exact": set(kept) == set(case.truth),
        "verdict": found.result.verdict,
        "seconds": seconds,
        "wrong": sorted(" ".join(term) for term in set(kept) ^ set(case.truth)) if case.truth else [],
        "covered": sum(covered),
        "terms": len(covered),
        "sure": len(sure),
        "sure and true": sum(right),
        "rivals": len(found.rivals),
    }


def summary(rows: list[dict[str, object]]) -> str:
    """One line for each case: how many were exact, covered, fit, and the processor time."""
    lines = []
    for name in dict.fromkeys(str(row["case"]) for row in rows):
        own = [row for row in rows if row["case"] == name]
        total = {key: sum(int(r.get(key, 0)) for r in own) for key in ("exact", "covered", "terms")}  # type: ignore[call-overload]
        fits = sum(r.get("verdict") == "fits" for r in own)
        seconds = float(np.median([float(r.get("seconds", np.nan)) for r in own]))  # type: ignore[arg-type]
        covered = f"{100 * total['covered'] / total['terms']:.1f} %" if total["terms"] else "-"
        lines.append(
            f"{name:24s} exact {total['exact']}/{len(own)}  covered {covered} of {total['terms']}  "
            f"fits {fits}/{len(own)}  {seconds:.1f} s"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.discovery", description=__doc__)
    parser.add_argument("--case", default="", help="those whose name holds this (default: all)")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", help="append every draw to this file, one JSON value a line")
    parser.add_argument("--cluster", metavar="WHERE", help="run on Dask: local, or tcp://host:8786")
    args, _ = parser.parse_known_args()
    seeds = range(args.first, args.first + args.seeds)
    each = [{"name": name, "seed": seed} for seed in seeds for name in CASES if args.case in name]

    def came(_: int, row: dict[str, object]) -> None:
        if args.out:
            with Path(args.out).open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    print(summary(draws("benchmarks.discovery:draw", each, terminal_progress(), args.cluster, came=came)))


if __name__ == "__main__":
    main()
