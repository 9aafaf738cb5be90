"""shakedown orbits: close returns of a recording and the periodic orbits they follow."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import project as projects
from app import project_names as names
from app.commands.project import keep_in_project
from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis import Motion, Orbits, PeriodicOrbit, Record, SearchSpace

COARSE = (
    "The record has few samples a turn, as a map has: orbits are sought as closed curves, which it does not "
    "show. That none is found says nothing."
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=names.recording, help="a recording in any format")
    parser.add_argument(
        "--channel",
        action="append",
        required=True,
        help="a measured coordinate; one alone is embedded by delays, several are taken as the states",
    )
    parser.add_argument(
        "--rate", type=float, metavar="HZ", help="sample rate of a file that does not tell it"
    )
    drive = parser.add_mutually_exclusive_group()
    drive.add_argument("--period-of", metavar="CHANNEL", help="channel with the periodic drive")
    drive.add_argument("--frequency", type=float, metavar="HZ", help="frequency of the periodic drive")
    drive.add_argument("--autonomous", action="store_true", help="there is no drive: find the periods too")
    parser.add_argument(
        "--longest", type=float, metavar="K", help="longest period, in drive periods or turns"
    )
    parser.add_argument("--epsilon", type=float, metavar="PERCENT", help="closure asked for, %% of the span")
    parser.add_argument(
        "--space", choices=("delay", "singular"), default="delay", help="how one channel is embedded"
    )
    parser.add_argument("--delay", type=int, metavar="N", help="delay of the embedding in samples")
    parser.add_argument("--dimension", type=int, metavar="D", help="dimension of the embedding")
    parser.add_argument(
        "--velocity", metavar="CHANNEL", help="a velocity, which must integrate to nothing over an orbit"
    )
    parser.add_argument(
        "--whatever-motion", action="store_true", help="search also in noise, drift and quasi-periodic motion"
    )
    parser.add_argument(
        "--unconfirmed", action="store_true", help="list also the close returns that are not confirmed"
    )
    parser.add_argument("--list", type=int, default=30, metavar="N", help="orbits printed (all go to --json)")
    parser.add_argument("--plot", metavar="FILE", help="draw the orbits found (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from analysis import DataError, autonomous_orbits, coarse, forced_orbits, mean_turn
    from app.drive import drive_period
    from app.motion import WITHOUT_ORBITS, no_orbits
    from drivers.formats import read

    record = read(args.file, args.rate)
    period, remarks = drive_period(record, args, record[args.channel[0]])
    if period is None and not args.autonomous:
        raise DataError(
            "The record does not tell the drive: give --frequency HZ, --period-of CHANNEL or --autonomous."
        )
    motion, gaps = _motion(record, args, period)
    remarks += gaps
    first = args.channel[0]
    if period is None and motion.kind == "chaotic" and coarse(record[first][record.channels[first].valid()]):
        remarks.append(COARSE)
    if motion.kind in WITHOUT_ORBITS and not args.whatever_motion:
        title = f"the record of {args.channel[0]}"
        payload = _described(no_orbits(motion), motion, record, args, period, remarks, title)
        payload["messages"].append("--whatever-motion searches all the same.")
        _tell(payload, args)
        return
    space, labels, title = _space(record, args)
    remarks += space.messages
    view = space.view
    common: dict[str, Any] = {
        "epsilon": None if args.epsilon is None else args.epsilon / 100,
        "scale": view.scale,
        "noise": view.noise,
        "valid": space.valid,
        "velocity": _velocity(record, args),
        "views": space.views,
        "progress": terminal_progress(),
    }
    if period is None:
        longest = None if args.longest is None else round(args.longest * mean_turn(view.points))
        found = autonomous_orbits(view.points, longest=longest, **common)
    else:
        multiples = range(1, int(args.longest or 20) + 1)
        found = forced_orbits(view.points, period, multiples=multiples, **common)
    if args.unconfirmed:
        found = replace(found, orbits=(*found.orbits, *found.unconfirmed))
    payload = _described(found, motion, record, args, period, remarks, title)
    if args.plot:
        from app.figures.orbits import save_orbits

        save_orbits(found, view.points, labels, record.dt, period, args.plot)
    _tell(payload, args)


def _tell(payload: dict[str, Any], args: argparse.Namespace) -> None:
    answer = plain(payload)
    if not write_json(args.json, answer):
        _show(payload, args.list)
    of = (Path(args.file).stem, "orbits", *args.channel)
    keep_in_project(lambda project: projects.keep_analysis(project, answer, of))


def _space(record: Record, args: argparse.Namespace) -> tuple[SearchSpace, list[str], str]:
    """Where returns are sought, with names of the coordinates and a title."""
    import numpy as np

    from analysis import channel_space, state_space

    names = args.channel
    valid = np.logical_and.reduce([record.channels[name].valid() for name in names])
    if len(names) > 1:
        space = state_space([record[name] for name in names], valid, names)
        return space, names, f"states {', '.join(names)}"
    name, singular = names[0], args.space == "singular"
    space = channel_space(
        record[name], valid, name, delay=args.delay, dimension=args.dimension, singular=singular
    )
    count, delay = space.dimension, space.delay
    if singular:
        labels = [f"singular coordinate {k + 1}" for k in range(count)]
        return (
            space,
            labels,
            f"{count} singular coordinates of {name}, window {(count - 1) * delay + 1} samples",
        )
    labels = [f"{name}({k * delay})" for k in range(count)]
    return space, labels, f"{count} delay coordinates of {name}, {delay} samples apart"


def _velocity(record: Record, args: argparse.Namespace) -> NDArray[np.float64] | None:
    """The channel whose integral must vanish: the one named, or the only one if its unit is a velocity's."""
    if args.velocity:
        return record[args.velocity]
    name = args.channel[0]
    unit = record.channels[name].unit.replace(" ", "")
    is_rate = len(args.channel) == 1 and unit.endswith("/s") and not unit.endswith("/s/s")
    return record[name] if is_rate else None


def _orbit(orbit: PeriodicOrbit, rate: float) -> dict[str, Any]:
    return {
        "multiple": orbit.multiple,
        "period": orbit.period / rate,
        "period_samples": orbit.period,
        "start": orbit.start,
        "closure": orbit.closure,
        "closure_bound": orbit.closure_bound,
        "count": orbit.count,
        "confirmed": orbit.confirmed,
        "doubt": orbit.doubt,
        "multipliers": [[m.real, m.imag] for m in orbit.multipliers.tolist()],
        "multiplier_stderr": orbit.multiplier_stderr if len(orbit.multipliers) else None,
        "error_bound": orbit.error_bound,
        "offset": orbit.offset,
        "starts": orbit.starts,
    }


def _motion(record: Record, args: argparse.Namespace, period: float | None) -> tuple[Motion, list[str]]:
    """Verdict on the first channel, and a remark about gaps: only chaos and periodic motion have orbits."""
    from analysis import DataError, Motion, examine
    from app.motion import longest_valid

    name = args.channel[0]
    samples, gaps = longest_valid(record.channels[name].valid(), record[name])
    try:
        found = examine(samples, record.dt, period=period)
    except DataError as error:
        found = Motion("cannot tell", (str(error).rstrip("."),))
    kept = [text.replace("was used", "was used for the verdict on the motion") for text in gaps]
    return found, kept


def _described(
    found: Orbits,
    motion: Motion,
    record: Record,
    args: argparse.Namespace,
    period: float | None,
    remarks: list[str],
    title: str,
) -> dict[str, Any]:
    from app.motion import described_motion

    return {
        **described_motion(motion),
        "file": args.file,
        "channels": args.channel,
        "rate": record.rate,
        "space": title,
        "drive_period": None if period is None else period / record.rate,
        "epsilon": found.epsilon,
        "scale": found.scale,
        "noise": found.noise,
        "recurrences": {"lags": found.lags, "counts": found.recurrences, "lowest": found.lowest},
        "peaks": found.peaks / record.rate,
        "orbits": [_orbit(o, record.rate) for o in found],
        "unconfirmed": [_orbit(o, record.rate) for o in found.unconfirmed],
        "messages": [*remarks, *found.messages],
    }


def _best_of_each_period(orbits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The closest orbit of every period first, then the second of every period, and so on."""
    seen: dict[object, int] = {}
    ranks: list[tuple[int, float, int, dict[str, Any]]] = []
    for o in sorted(orbits, key=lambda o: (o["closure"], o["closure_bound"])):
        key = o["multiple"] or round(o["period_samples"])
        seen[key] = seen.get(key, 0) + 1
        ranks.append((seen[key], o["period_samples"], len(ranks), o))
    return [o for *_, o in sorted(ranks)]


def _multipliers(orbit: dict[str, Any]) -> str:
    """The first one with its standard error, then the others; or that they are unknown."""
    if not orbit["multipliers"]:
        return "unknown"
    words = [f"{re:.4g}" + (f"{im:+.3g}i" if im else "") for re, im in orbit["multipliers"]]
    words[0] += f" ± {orbit['multiplier_stderr']:.2g}"
    return ", ".join(words)


def _show(payload: dict[str, Any], most: int) -> None:
    orbits = payload["orbits"]
    print(f"motion: {payload['motion']}: {'; '.join(payload['evidence']['reasons'])}.")
    if not orbits:
        print("0 orbits")
        for text in payload["messages"]:
            print(f"! {text}")
        return
    closure = f"closure within {100 * payload['epsilon']:g} % of the span"
    print(f"{len(orbits)} orbits in {payload['space']}, {closure}")
    shown = _best_of_each_period(orbits)[:most]
    rows = [
        [
            "yes" if o["confirmed"] else "no",
            o["multiple"] or "",
            f"{o['period']:.6g}",
            o["start"],
            o["count"],
            f"{100 * o['closure']:.3g}",
            f"{100 * o['closure_bound']:.3g}",
            f"{100 * o['error_bound']:.3g}" if o["multipliers"] else "",
            _multipliers(o),
        ]
        for o in sorted(shown, key=lambda o: (o["period_samples"], o["closure"]))
    ]
    columns = [
        "confirmed",
        "k",
        "period [s]",
        "start",
        "count",
        "closure %",
        "at most %",
        "error at most %",
        "multipliers",
    ]
    print(table(columns, rows))
    if len(orbits) > most:
        print(f"... the {most} closest of {len(orbits)}; --list or --json gives all.")
    for text in payload["messages"]:
        print(f"! {text}")
