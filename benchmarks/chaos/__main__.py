"""The rows of the chaos benchmark, one line a system, then the summary."""

from __future__ import annotations

import argparse
import time

import numpy as np

from analysis.motion.dimension import dimension_of_all
from analysis.motion.verdict import Motion, examine
from analysis.reconstruct.delay import delay_by_mutual_information
from analysis.reconstruct.dimension import false_neighbours
from analysis.signal.noise import noise_level
from analysis.signal.timescale import theiler_window
from benchmarks.chaos import orbits
from benchmarks.chaos.systems import KNOWN, NEW, NOT_CHAOS, Array, Flow

SAMPLES = 20_000
NOISES = (0.0, 0.01)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="?", default="motion", choices=("motion", "orbits"))
    parser.add_argument("--seeds", type=int, default=1, help="records of each chaotic system")
    parser.add_argument("--regular", type=int, default=20, help="records of each kind that is not chaos")
    parser.add_argument("--only", default="", help="chaotic systems whose name holds this; - for none")
    args = parser.parse_args()
    if args.what == "orbits":
        for title, flows in (("known", KNOWN), ("new", NEW)):
            bounded = [
                f for f in flows if args.only in f.name and f.name != "pendulum"
            ]  # its angle runs away
            orbits.compare(title, bounded, args.seeds, NOISES)
        orbits.invented(args.regular)
        return
    for title, flows in (("known", KNOWN), ("new", NEW)):
        _chaotic(title, [f for f in flows if args.only in f.name], args.seeds)
    if args.regular:
        _regular(args.regular)


def _chaotic(title: str, flows: list[Flow], seeds: int) -> None:
    rows = []
    for flow in flows:
        truth = flow.spectrum(3000)
        top, error = float(truth.exponents[0]), float(truth.stderr[0])
        full = truth.dimension + (0.0 if flow.period is None else 1.0)
        for seed in range(seeds):
            clean = flow.states(SAMPLES, seed)[flow.channel]
            rng = np.random.default_rng(seed)
            for noise in NOISES:
                x = clean + noise * clean.std() * rng.standard_normal(SAMPLES)
                begun = time.process_time()
                motion = examine(x, flow.dt, period=flow.samples_a_period, rng=rng)
                size = _dimension(x, flow.samples_a_period, rng)
                e = motion.exponent
                ratio = e.value / top if e else np.nan
                held = e is not None and e.lower - 2 * error <= top <= e.upper + 2 * error
                inside = size.lower <= full <= size.upper
                rows.append((motion.kind == "chaotic", abs(ratio - 1), held, inside))
                print(
                    f"{flow.name:22s} noise {noise:4g} {motion.kind:12s} exponent {ratio:5.2f} ± "
                    f"{e.stderr / top if e else np.nan:4.2f} of {top:.4g} {'in' if held else 'OUT'}, "
                    f"dimension {size.value:.2f} ± {size.stderr:.2f} of {full:.2f} "
                    f"{'in' if inside else 'OUT'}, "
                    f"{time.process_time() - begun:.0f} s",
                    flush=True,
                )
    if rows:
        table = np.array(rows, dtype=float)
        print(
            f"{title}: {len(rows)} cases; called chaotic {100 * table[:, 0].mean():.0f} %; median error "
            f"of the exponent {100 * np.nanmedian(table[:, 1]):.1f} %; held by its interval "
            f"{100 * table[:, 2].mean():.0f} %; dimension held {100 * table[:, 3].mean():.0f} %",
            flush=True,
        )


def _dimension(x: Array, period: float | None, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    noise, theiler = noise_level(x).value, theiler_window(x)
    delay = delay_by_mutual_information(x, 1.0).samples
    dimension = false_neighbours(x, delay, theiler=theiler, noise=noise).dimension
    unfolded = dimension if period is None else max(dimension - 1, 2)
    return dimension_of_all(x, delay, unfolded, theiler, noise, period, rng)


def _regular(count: int) -> None:
    for name, make in NOT_CHAOS.items():
        kinds: dict[str, int] = {}
        for seed in range(count):
            rng = np.random.default_rng(1000 + seed)
            x = make(rng, SAMPLES)
            noise = NOISES[seed % 2]
            found: Motion = examine(x + noise * x.std() * rng.standard_normal(SAMPLES), 1.0, rng=rng)
            kinds[found.kind] = kinds.get(found.kind, 0) + 1
        print(f"{name}: {count} records, called {kinds}", flush=True)


if __name__ == "__main__":
    main()
