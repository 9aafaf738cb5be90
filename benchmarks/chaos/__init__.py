"""Verdicts, exponents and dimensions from one channel of 20 000 samples, against truth from the equations.

    python -m benchmarks.chaos [orbits] [--seeds 1] [--first 0] [--regular 20] [--noises 0 0.01] [--only NAME]
        [--sets new latest] [--cluster WHERE]

The largest exponent is compared with that of the variational equations, the dimension with the
Kaplan-Yorke dimension (an upper bound of the correlation dimension, within a few hundredths for these flows).
``orbits`` compares periodic orbits and their multipliers with Newton's method on the equations. The records
are examined by the engine of campaigns, on all processors or on a Dask cluster.
"""

from __future__ import annotations

import argparse

from benchmarks.chaos import motions, orbits
from benchmarks.chaos.systems import FOREIGN, KNOWN, LATEST, NEW, UNSEEN, WEIGHED

NOISES = (0.0, 0.01)
SETS = {
    "known": KNOWN,
    "new": NEW,
    "foreign": FOREIGN,
    "unseen": UNSEEN,
    "weighed": WEIGHED,
    "latest": LATEST,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description=__doc__)
    parser.add_argument("what", nargs="?", default="motion", choices=("motion", "orbits"))
    parser.add_argument("--seeds", type=int, default=1, help="records of each chaotic system")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--noises", type=float, nargs="+", default=NOISES, help="in parts of the spread")
    parser.add_argument("--sets", nargs="+", help="of the chaotic systems: " + ", ".join(SETS))
    parser.add_argument("--regular", type=int, default=20, help="records of each kind that is not chaos")
    parser.add_argument("--only", default="", help="chaotic systems whose name holds this; - for none")
    parser.add_argument("--cluster", help="Dask: local, or the address of a scheduler")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.seeds)
    for title, flows in SETS.items():
        if args.sets and title not in args.sets:
            continue
        chosen = [flow for flow in flows if args.only in flow.name]
        if args.what == "motion":
            motions.compare(title, chosen, seeds, args.noises, args.cluster)
        else:
            bounded = [flow for flow in chosen if "pendulum" not in flow.name]  # their angles run away
            orbits.compare(title, bounded, seeds, args.noises, args.cluster)
    if args.what == "motion":
        motions.regular(args.first, args.regular, args.noises, args.cluster)
    else:
        orbits.invented(args.first, args.regular, args.cluster)
