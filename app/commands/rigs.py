"""`shakedown rigs`: the rigs that are known, or one of them in detail."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from typing import Any

from analysis import ShakedownError
from app.output import add_json_option, table, write_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rig", nargs="?", help="name or profile file of one rig")
    parser.add_argument(
        "--check",
        action="store_true",
        help="open the rig's source and see whether it does all that a source must (the shaker stays off)",
    )
    parser.add_argument(
        "--specimen",
        type=int,
        default=0,
        metavar="N",
        help="tell what a virtual specimen really is, by number",
    )
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from drivers.rig.profile import known_rigs, load_rig
    from drivers.rig.registry import names_taken
    from drivers.virtual.specimens import true_parameters, with_specimen

    if args.check:
        return _check(args)
    if args.specimen and not args.rig:
        raise ShakedownError("--specimen needs a rig: its name, or its profile's file.")
    known = known_rigs()
    profiles = [with_specimen(load_rig(n), args.specimen) for n in ([args.rig] if args.rig else known.files)]
    if not args.rig:
        for note in [*known.notes, *names_taken()]:
            print(f"shakedown: {note}", file=sys.stderr)
    if write_json(args.json, [_describe(p) for p in profiles]):
        return 0
    if not args.rig:
        rows = [(p.key, p.rate, len(p.channels), p.instruments["source"]["driver"], p.name) for p in profiles]
        print(table(["rig", "Hz", "channels", "source", "what it is"], rows))
        return 0
    profile = profiles[0]
    print(f"{profile.name}\n{profile.description}\n")
    channels = [(c.name, c.unit, c.kind, c.sensitivity, c.range, c.sensor) for c in profile.channels]
    print(table(["channel", "unit", "kind", "V/unit", "range V", "sensor"], channels))
    limits = profile.limits
    print(f"\nrate {profile.rate:g} Hz; " + (
        f"drive at most {limits.peak:g} V, {limits.lowest_frequency:g} to {limits.highest_frequency:g} Hz, "
        f"{limits.slew:g} V/s" if "exciter" in profile.instruments else "no shaker is driven"
    ))  # fmt: skip
    if profile.drive is not None:
        values = ", ".join(f"{k} {v}" for k, v in profile.drive.describe().items() if k != "kind")
        print(f"drive at start: {profile.drive.kind}, {values}")
    for name, instrument in profile.instruments.items():
        print(f"{name}: {instrument['driver']}")
    if args.specimen:
        values = ", ".join(f"{name} = {value:.6g}" for name, value in true_parameters(profile).items())
        print(f"specimen {args.specimen}: {values}")
    return 0


def _check(args: argparse.Namespace) -> int:
    from drivers.base.contract import broken_promises
    from drivers.rig.profile import load_rig, open_rig
    from drivers.rig.registry import called

    if args.rig is None:
        raise ShakedownError("--check needs a rig: its name, or its profile's file.")
    profile = load_rig(args.rig)
    alone = replace(profile, instruments={"source": profile.instruments["source"]})
    broken = broken_promises(open_rig(alone).source)
    if not write_json(args.json, {"rig": profile.key, "broken": broken}):
        driver = called("sources", profile.instruments["source"]["driver"])
        whole = f"The source of {profile.key} keeps to all that a source must."
        print("\n".join([f"{driver} does not do all that a source must:", *broken]) if broken else whole)
    return 1 if broken else 0


def _describe(profile: Any) -> dict[str, Any]:
    from drivers.virtual.specimens import number_of, true_parameters

    limits = {k: v for k, v in vars(profile.limits).items() if v != float("inf")}
    return {
        "rig": profile.key,
        "name": profile.name,
        "description": profile.description,
        "rate": profile.rate,
        "model": profile.model,
        "channels": [
            {"name": c.name, "unit": c.unit, "kind": c.kind, "sensor": c.sensor} for c in profile.channels
        ],
        "limits": limits,
        "drive": None if profile.drive is None else profile.drive.describe(),
        "instruments": {name: i["driver"] for name, i in profile.instruments.items()},
        "specimen": None if not number_of(profile) else true_parameters(profile),
    }
