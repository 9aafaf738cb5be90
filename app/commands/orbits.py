"""shakedown orbits: close returns of a recording and the periodic orbits they follow."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from app.output import add_json_option, plain, table, terminal_progress, write_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis import Motion, Orbits, PeriodicOrbit, Record

UNKNOWN = (
    "The multipliers are unknown: from one channel without a drive the embedding by default gets half of "
    "their signs wrong. Measure more states, or compare several choices of --delay and --dimension."
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a recording in any format")
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
    parser.add_argument("--list", type=int, default=30, metavar="N", help="orbits printed (all go to --json)")
    parser.add_argument("--plot", metavar="FILE", help="draw the orbits found (png, svg or pdf)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from analysis import DataError, autonomous_orbits, forced_orbits, mean_turn
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
    if motion.kind in WITHOUT_ORBITS and not args.whatever_motion:
        title = f"the record of {args.channel[0]}"
        payload = _described(no_orbits(motion), motion, record, args, period, remarks, title)
        payload["messages"].append("--whatever-motion searches all the same.")
        if not write_json(args.json, plain(payload)):
            _show(payload, args.list)
        return
    space = _space(record, args)
    remarks += space["remarks"]
    common: dict[str, Any] = {
        "epsilon": None if args.epsilon is None else args.epsilon / 100,
        "scale": space["scale"],
        "noise": space["noise"],
        "valid": space["valid"],
        "velocity": _velocity(record, args),
        "progress": terminal_progress(),
    }
    points = space["points"]
    if period is None:
        longest = None if args.longest is None else round(args.longest * mean_turn(points))
        told = len(args.channel) > 1 or (args.delay is not None and args.dimension is not None)
        found = autonomous_orbits(points, longest=longest, maps=told, **common)
        if not told:
            remarks.append(UNKNOWN)
    else:
        found = forced_orbits(points, period, multiples=range(1, int(args.longest or 20) + 1), **common)
    payload = _described(found, motion, record, args, period, remarks, space["title"])
    if args.plot:
        from app.figures.orbits import save_orbits

        save_orbits(found, points, space["labels"], record.dt, period, args.plot)
    if not write_json(args.json, plain(payload)):
        _show(payload, args.list)


def _space(record: Record, args: argparse.Namespace) -> dict[str, Any]:
    """The points in which returns are sought: measured states, or an embedding of the only channel."""
    import numpy as np

    from analysis import noise_level

    rows = [record[name] for name in args.channel]
    valid = np.logical_and.reduce([record.channels[name].valid() for name in args.channel])
    levels = [noise_level(row) for row in rows]
    remarks = [f"{name}: {n.message}" for name, n in zip(args.channel, levels, strict=True) if n.message]
    if len(rows) > 1:
        return {
            "points": np.stack(rows),
            "scale": None,
            "noise": np.array([n.value for n in levels]),
            "valid": valid,
            "labels": args.channel,
            "title": f"states {', '.join(args.channel)}",
            "remarks": remarks,
        }
    from analysis import delay_coordinates, singular_coordinates

    x = np.where(valid, rows[0], np.mean(rows[0][valid]) if valid.any() else 0.0)
    delay, dimension = _embedding(x, args)
    reach = (dimension - 1) * delay
    if args.space == "singular":
        points = singular_coordinates(x, reach + 1, dimension).coordinates
        title = f"{dimension} singular coordinates of {args.channel[0]}, window {reach + 1} samples"
        labels = [f"singular coordinate {k + 1}" for k in range(dimension)]
    else:
        points = delay_coordinates(x, dimension, delay)
        title = f"{dimension} delay coordinates of {args.channel[0]}, {delay} samples apart"
        labels = [f"{args.channel[0]}({k * delay})" for k in range(dimension)]
    whole = np.convolve(~valid, np.ones(reach + 1))[reach : reach + points.shape[1]] < 0.5
    return {
        "points": points,
        "scale": np.full(len(points), np.ptp(points[0])),
        "noise": np.full(len(points), levels[0].value),
        "valid": whole,
        "labels": labels,
        "title": title,
        "remarks": remarks,
    }


def _embedding(x: NDArray[np.float64], args: argparse.Namespace) -> tuple[int, int]:
    from analysis import delay_by_mutual_information, false_neighbours

    # Close returns want short windows: a third of the delay that makes coordinates independent is enough.
    delay = args.delay or max(round(delay_by_mutual_information(x, 1.0).samples / 3), 1)
    return delay, args.dimension or max(false_neighbours(x, 3 * delay).dimension, 3)


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
        "multipliers": [[m.real, m.imag] for m in orbit.multipliers.tolist()],
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
    rows = []
    for o in sorted(shown, key=lambda o: (o["period_samples"], o["closure"])):
        multipliers = ", ".join(f"{re:.4g}" + (f"{im:+.3g}i" if im else "") for re, im in o["multipliers"])
        rows.append(
            [
                o["multiple"] or "",
                f"{o['period']:.6g}",
                o["start"],
                o["count"],
                f"{100 * o['closure']:.3g}",
                f"{100 * o['closure_bound']:.3g}",
                f"{100 * o['error_bound']:.3g}" if o["multipliers"] else "",
                multipliers,
            ]
        )
    columns = [
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
