"""shakedown hold: unstable periodic orbits held on the rig by small corrections of its drive."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from analysis import DataError, percent
from app import project_names as names
from app.holding.study import Study
from app.holding.told import measured_multiplier, multiplier_words
from app.holding.work import UNASKED, HoldRequest, HoldWork
from app.loop_session import LoopSession
from app.output import (
    FORCE_BUT_RECORDINGS,
    add_json_option,
    plain,
    show_problems,
    table,
    terminal_progress,
    tried,
    write_json,
)
from app.rig_access import add_virtual_options, asked_profile, check_free, recording_file

if TYPE_CHECKING:
    from analysis import Progress
    from drivers.rig.profile import RigProfile


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rig", help="name of a rig (see `shakedown rigs`) or a profile file")
    parser.add_argument(
        "--record", required=True, type=names.recording, metavar="FILE",
        help="a recording of this rig, chaotic",
    )  # fmt: skip
    parser.add_argument("--fit", required=True, type=names.fit, metavar="RESULT", help=names.FIT)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--list", action="store_true", help="show the orbits that could be held; nothing moves"
    )
    which.add_argument("--orbit", type=int, action="append", metavar="N", help="an orbit, as --list counts")
    which.add_argument("--all", action="store_true", help="one orbit after the other")
    parser.add_argument("--periods", type=int, default=200, help="periods of the drive to hold and average")
    parser.add_argument("--longest", type=int, default=6, metavar="K", help="longest orbit, in periods")
    parser.add_argument(
        "--wait", type=float, default=400.0, metavar="N", help="longest wait for an orbit, in periods"
    )
    parser.add_argument("--out", metavar="FILE", help="recording to write, with target, correction and state")
    add_virtual_options(parser)
    add_json_option(parser, FORCE_BUT_RECORDINGS)


def run(args: argparse.Namespace) -> int:
    from analysis import Identification
    from drivers.base.files import read_text
    from drivers.formats import read

    if args.longest < 1:
        raise DataError("--longest is at least 1.")
    request = HoldRequest(args.periods, args.wait)
    profile, record = asked_profile(args), read(args.record)
    fit = Identification.from_json(read_text(args.fit, "a result of identify"))
    if args.out is None and not args.list:
        raise DataError("--out FILE names the recording of what is held.")
    progress = terminal_progress()
    study = Study(profile, record, fit, args.longest, progress, args.fit)
    if args.list:
        payload = study.listed()
        if not write_json(args.json, plain(payload)):
            _show_targets(payload)
        return 0
    result = _on_the_rig(profile, study, request, args, progress)
    unwritten: list[str] = []
    if not tried(lambda: write_json(args.json, plain(result)), unwritten):
        _show(result)
    show_problems(unwritten)
    if result["problem"] or unwritten:
        return 1
    return 0 if result["held"] else 3


def _chosen(args: argparse.Namespace, count: int) -> list[int]:
    if args.all:
        return list(range(count))
    for number in args.orbit:
        if not 1 <= number <= count:
            raise DataError(f"There is no orbit {number}: --list shows {count}.")
    return [number - 1 for number in dict.fromkeys(args.orbit)]


def _on_the_rig(
    profile: RigProfile, study: Study, request: HoldRequest, args: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    chosen = _chosen(args, len(study.targets))
    out = recording_file(args.out)
    check_free(out)
    session = LoopSession(profile, args.fast, args.seed, out, progress)
    work = HoldWork(session.bench, study, request, session.progress)
    session.run(lambda: work.run(chosen), "holding is over")
    progress.report(0.95, "multipliers")
    work.complete()
    return work.result(session.files, session.problem)


def _show_targets(payload: dict[str, Any]) -> None:
    count = len(payload["orbits"])
    print(f"{count} unstable orbits of {payload['model']} near the record, seen by "
          f"{', '.join(payload['channels'])}")  # fmt: skip
    rows = [
        [o["number"], o["periods"], multiplier_words(o["multipliers"]), f"{o['expected_wait']:.0f}",
         f"{100 * o['expected_control']:.2g}", f"{1e3 * o['longest_delay']:.3g}"]
        for o in payload["orbits"]
    ]  # fmt: skip
    columns = ["orbit", "k", "multipliers", "wait (periods)", "control %", "delay at most (ms)"]
    print(table(columns, rows))


def _show(result: dict[str, Any]) -> None:
    path, loop = result["path"], result["loop"]
    if path is not None:
        own = f"{1e3 * loop['delay']:.3g} ± {1e3 * loop['jitter']:.2g} ms"
        print(f"loop: delay {1e3 * path['delay']:.3g} ms (its own clock: {own}, {loop['missed']} deadlines "
              f"missed), gain {path['gain']:.4g} a volt, lag {1e3 * path['lag']:.2g} ms")  # fmt: skip
    for mode in result["modes"]:
        print(f"mode beside the model: {mode['frequency']:.4g} Hz, damping {percent(mode['damping'])}")
    if result["orbits"]:
        print(f"{result['held']} of {result['offered']} orbits held")
        _show_orbits(result["orbits"])
    for file in result["files"]:
        print(file)
    if result["problem"]:
        show_problems([result["problem"]])


def _show_orbits(orbits: list[dict[str, Any]]) -> None:
    rows = [
        [o["number"], o["periods"], o["verdict"], _number(o, "wait", 1, ".0f"), o.get("averaged_periods", ""),
         _number(o, "mean_control", 100, ".2g"), _number(o, "floor", 100, ".2g"),
         _number(o, "control", 100, ".2g"), multiplier_words(o["model_multipliers"]), measured_multiplier(o)]
        for o in orbits
    ]  # fmt: skip
    print(table(["orbit", "k", "verdict", "wait", "periods", "mean control %", "floor %", "rms %",
                 "model's multipliers", "on the orbit"], rows))  # fmt: skip
    for o in orbits:
        if o["verdict"] != "held" or o["reason"] == UNASKED:
            print(f"! orbit {o['number']}: {o['verdict']}: {o['reason']}.")


def _number(row: dict[str, Any], name: str, factor: float, form: str) -> str:
    value = row.get(name)
    return "" if value is None or value != value else f"{factor * value:{form}}"
