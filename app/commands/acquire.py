"""`shakedown acquire`: record a rig, for some seconds or periods, behind a trigger, or a whole sequence."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError, ShakedownError
from app import project as projects
from app.ctrl_c import CtrlC
from app.output import FORCE_BUT_RECORDINGS, add_json_option, table, terminal_progress, write_json
from app.rig_access import add_virtual_options, asked_profile, check_free, open_for_command

if TYPE_CHECKING:
    from analysis import Progress
    from drivers.acquisition.engine import Engine
    from drivers.base.trigger import Trigger
    from drivers.rig.profile import Rig, RigProfile

TAIL_SECONDS = 0.5  # recorded after a STOP, so that the ramp and the first of the decay are seen


def configure(parser: argparse.ArgumentParser) -> None:
    inside = projects.find_folder() is not None  # a project has a rig, and a folder for recordings
    parser.add_argument(
        "rig",
        nargs="?" if inside else None,
        help="name of a rig (see `shakedown rigs`) or a profile file; in a project by default its own",
    )
    parser.add_argument(
        "--out",
        required=not inside,
        metavar="FILE",
        help="recording to write; a folder for a sequence; in a project by default named by date and time",
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument("--seconds", type=float, help="how long to record; without it until Ctrl-C")
    length.add_argument("--periods", type=float, help="the same in periods of the drive")
    parser.add_argument("--sequence", metavar="FILE", help="run a plan of steps or sweeps from a TOML file")
    parser.add_argument(
        "--drive", metavar="FILE", help="play the [drive] of a TOML file, such as a plan, not the rig's own"
    )
    parser.add_argument("--settle", type=float, help="seconds to let pass first (default: the rig's own)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="rate, drive (amplitude, frequency ...) or a parameter of a virtual specimen",
    )
    parser.add_argument("--no-drive", action="store_true", help="record without driving the shaker")
    parser.add_argument(
        "--trigger", metavar="COND", help="such as 'x > 0.5' or 'x < -1': start at this crossing"
    )
    parser.add_argument("--before", type=float, default=0.0, help="seconds kept from before the trigger")
    parser.add_argument("--hold-off", type=float, default=0.0, help="seconds without another trigger")
    parser.add_argument("--captures", type=int, default=1, help="recordings to make, one per trigger")
    add_virtual_options(parser)
    parser.add_argument("--note", default="", help="kept in the recording")
    parser.add_argument(
        "--operator", help="who records; kept in the recording (default: the window's setting)"
    )
    add_json_option(parser, FORCE_BUT_RECORDINGS)


def run(args: argparse.Namespace) -> int:
    if args.captures < 1 or (args.settle is not None and args.settle < 0):
        raise DataError("--captures is a number from 1 on, --settle a time that is not negative.")
    _take_from_project(args)
    profile = asked_profile(args)
    if args.drive:
        profile = _with_drive(profile, args)
    profile = profile.with_changes(**_changes(profile, args.set))
    rig = open_for_command(profile, args.fast, args.seed)
    from drivers.acquisition.engine import Engine

    for notice in rig.notices:
        print(f"shakedown: {notice}", file=sys.stderr)
    engine = Engine(rig.source, rig.exciter, 0.25 if args.fast else 0.02)
    with CtrlC(at_once=rig.emergency_stop) as ctrl_c:
        progress = replace(terminal_progress(), cancelled=ctrl_c.check)
        try:
            if args.sequence:
                result = _sequence(rig, engine, args, progress)
            else:
                result = _record(rig, engine, args, progress, ctrl_c)
        finally:
            engine.stop()
            out_of_reach = _close(rig)
        if ctrl_c.word:
            result["problem"] = f"The recording was ended: {ctrl_c.word}."
    if not write_json(args.json, result):
        _print(result)
    return 1 if result["problem"] or out_of_reach else 0


def _close(rig: Rig) -> bool:
    """Let go of the rig; True, and said at once, if its output could not be set to zero."""
    from drivers.base.protocols import InstrumentError

    try:
        rig.close()
    except InstrumentError as error:  # what was recorded is shown all the same
        print(f"shakedown: {error}", file=sys.stderr)
        return True
    return False


def _take_from_project(args: argparse.Namespace) -> None:
    """Rig and place of the recording as the project says, where the command does not."""
    from app.library import free_path

    args.project = projects.find()
    if args.project is None:
        return
    if args.rig is None:
        own = args.project.rig_path
        args.rig = str(own) if own.is_file() else args.project.rig
        if not args.rig:
            raise DataError(
                "The project names no rig yet: `shakedown project set --rig NAME`, or name one here."
            )
    if args.out is None:
        name = Path(args.sequence).stem if args.sequence else ""
        path = free_path(args.project.recordings, name)
        args.out = str(path.with_suffix("") if args.sequence else path)


def _with_drive(profile: RigProfile, args: argparse.Namespace) -> RigProfile:
    """The rig with the drive of a file; its length is that of the recording unless another is given."""
    from drivers.rig.drive_file import load_drive

    if args.no_drive or args.sequence:
        raise DataError("--drive gives what is played: it goes neither with --no-drive nor with --sequence.")
    found = load_drive(args.drive)
    if args.seconds is None and args.periods is None:
        args.seconds = found.seconds
    return replace(profile, drive=found.waveform)


def _changes(profile: RigProfile, settings: list[str]) -> dict[str, Any]:
    """What --set asks for: the rate, fields of the drive, and the rest for the specimen."""
    changes: dict[str, Any] = {}
    specimen: dict[str, float] = {}
    drive = set() if profile.drive is None else set(profile.drive.describe())
    for setting in settings:
        name, _, text = setting.partition("=")
        try:
            value = float(text)
        except ValueError:
            raise DataError(f"--set takes NAME=NUMBER, not '{setting}'.") from None
        if name == "rate" or name in drive:
            changes[name] = value
        else:
            specimen[name] = value
    return {**changes, "specimen": specimen} if specimen else changes


def _record(
    rig: Rig, engine: Engine, args: argparse.Namespace, progress: Progress, ctrl_c: CtrlC
) -> dict[str, Any]:
    from drivers.acquisition.capture import recording_to
    from drivers.base.latch import DriveStopped

    length, trigger = _length(rig, args), _trigger(rig, args)
    out = Path(args.out)
    foreign = _foreign(out)
    target = out.with_name(out.name + ".recording.h5") if foreign else out
    check_free(out if foreign else target.with_name(target.name.removesuffix(".h5") + ".h5"))
    metadata = _metadata(rig, args)
    engine.start(held=True)
    driven = not args.no_drive and rig.profile.drive is not None
    if driven:
        rig.play()
    if driven:
        _await_drive(rig, engine, progress)
    settle = rig.profile.settle if args.settle is None else args.settle
    _advance(rig, engine, settle, progress, "settling", driven)
    capture = engine.record(recording_to(target, rig.source, metadata), length, trigger, args.captures)
    interrupted, stopped = False, ""
    try:
        if trigger is not None or length is None:
            while not capture.wait(0.05):
                rig.beat()
                if driven:
                    rig.check_drive()
                if rig.source.waits:
                    engine.advance(1.0)
                state = "waiting for the trigger" if not capture.triggered else "recording"
                progress.report(0.5, f"{state}, {capture.recorded / rig.source.rate:.1f} s; Ctrl-C ends")
        else:
            _advance(rig, engine, length / rig.source.rate, progress, "recording", driven)
            while not capture.wait(0.05):
                rig.beat()
                progress.report(0.999, "finishing")
    except KeyboardInterrupt:
        interrupted = True
    except DriveStopped as error:
        stopped = str(error)
        with contextlib.suppress(ShakedownError):  # the recording may end by itself meanwhile
            engine.advance(TAIL_SECONDS, lambda _: rig.beat())
    except ShakedownError:
        pass  # said below: what was recorded is saved
    capture.ask_to_end(ctrl_c.word)
    _ramp_down(rig, engine)  # before finishing, which may take a while
    while not capture.wait(0.05):
        rig.beat()
    with contextlib.suppress(OSError):  # the terminal may be gone
        replace(progress, cancelled=None).report(1.0, "done")
    result = _result(rig, engine, capture, out if foreign else None, interrupted)
    result["problem"] = result["problem"] or stopped or None
    return result


def _advance(
    rig: Rig, engine: Engine, seconds: float, progress: Progress, message: str, driven: bool
) -> None:
    if seconds <= 0:
        return

    def watch(part: float) -> None:
        rig.beat()
        if driven:
            rig.check_drive()
        progress.report(0.999 * part, f"{message}, {seconds * (1 - part):.0f} s left")

    engine.advance(seconds, watch)


def _await_drive(rig: Rig, engine: Engine, progress: Progress) -> None:
    from drivers.acquisition.rise import advance_until_risen

    def watch(_: float) -> None:
        rig.beat()
        rig.check_drive()
        progress.report(0.0, "the drive rises")

    advance_until_risen(rig, engine, watch)


def _ramp_down(rig: Rig, engine: Engine) -> None:
    if rig.exciter is None:
        return
    rig.exciter.stop("recording finished")
    if engine.status.running and rig.source.waits:
        engine.advance(0.1)


def _length(rig: Rig, args: argparse.Namespace) -> int | None:
    seconds = args.seconds
    if args.periods is not None:
        frequency = getattr(rig.profile.drive, "frequency", None)
        if not frequency:
            raise DataError("--periods needs a rig that is driven by a sine.")
        seconds = args.periods / frequency
    if seconds is None:
        if args.fast:
            raise DataError("--fast needs --seconds or --periods.")
        return None
    if not 0 < seconds < 1e9:
        raise DataError(f"The length must be a positive time, not {seconds:g} s.")
    return max(1, round(seconds * rig.source.rate))


def _trigger(rig: Rig, args: argparse.Namespace) -> Trigger | None:
    from drivers.base.trigger import Trigger

    if args.trigger is None:
        return None
    found = re.fullmatch(r"\s*(\S+?)\s*([<>])\s*([-+.\deE]+)\s*", args.trigger)
    try:
        name, sign, level = found.groups()  # type: ignore[union-attr]
        slope = "rising" if sign == ">" else "falling"
        trigger = Trigger(name, float(level), slope, args.before, args.hold_off)
    except (AttributeError, ValueError):
        raise DataError(f"--trigger takes a condition such as 'x > 0.5', not '{args.trigger}'.") from None
    trigger.row([c.name for c in rig.source.channels])
    return trigger


def _metadata(rig: Rig, args: argparse.Namespace) -> dict[str, Any]:
    from app.settings import Settings
    from drivers.acquisition.metadata import recording_metadata

    test = args.project
    operator = args.operator
    if operator is None:
        operator = (test.operator if test is not None else "") or Settings.load().operator
    return recording_metadata(
        rig.source, rig.profile, operator=operator, notes=args.note, driven=not args.no_drive,
        seed=args.seed, test={} if test is None else test.metadata(),
    )  # fmt: skip


def _foreign(out: Path) -> bool:
    """Whether the name asks for another format than the native one."""
    from drivers.formats import format_for_writing

    if out.suffix in ("", ".h5"):
        return False
    try:
        return format_for_writing(out).name != "native"
    except DataError:
        return False  # a dot in the name, no format: run1.5 becomes run1.5.h5


def _result(
    rig: Rig, engine: Engine, capture: Any, foreign: Path | None, interrupted: bool
) -> dict[str, Any]:
    from drivers.acquisition.capture import WARNINGS
    from drivers.formats import open_lazily, write

    status = engine.status
    files, channels, samples, drive = [], {}, 0, None
    warnings: list[str] = []
    for number, finished in enumerate(capture.finished):
        path = finished.path
        with open_lazily(path) as recording:
            record = recording.read()
            notes = (str(event.get("text", "")) for event in recording.about.events)
            warnings += [text for text in notes if text.startswith(WARNINGS)]
            samples += len(record)
            drive = record.excitation
            if number == 0:
                channels = {n: _statistics(record.channels[n]) for n in record.names}
            if foreign is not None:
                name = (
                    foreign
                    if number == 0
                    else foreign.with_name(f"{foreign.stem}-{number + 1}{foreign.suffix}")
                )
                write(recording, name)
        if foreign is not None:
            path.unlink()
            path = name
        files.append(str(path))
    stop = capture.drive_stop
    stopped = "" if stop is None else (
        f"The drive was stopped while recording, at sample {stop.sample} ({stop.drive}): "
        f"{stop.reason}. The recording says so and ends there."
    )  # fmt: skip
    problem = status.failure or capture.failed or stopped or ("" if files else "nothing was recorded")
    return {
        "rig": rig.profile.key,
        "files": files,
        "rate": rig.source.rate,
        "samples": samples,
        "seconds": samples / rig.source.rate,
        "channels": channels,
        "excitation": None if drive is None else vars(drive),
        "gaps": status.gaps,
        "lost": status.lost,
        "overloads": status.overloads,
        "late": status.late,
        "warnings": warnings,
        "interrupted": interrupted,
        "drive_stopped": None if stop is None else dict(vars(stop)),
        "problem": problem or None,
    }


def _statistics(channel: Any) -> dict[str, Any]:
    import numpy as np

    good = channel.data[channel.valid()]
    numbers = (
        {"mean": good.mean(), "rms": np.sqrt(np.mean(good**2)), "min": good.min(), "max": good.max()}
        if len(good)
        else {}
    )
    return {"unit": channel.unit, **{k: float(v) for k, v in numbers.items()}}


def _sequence(rig: Rig, engine: Engine, args: argparse.Namespace, progress: Progress) -> dict[str, Any]:
    from drivers.acquisition.sequence import SequenceRun, load_sequence

    plan = SequenceRun(load_sequence(args.sequence), args.out, _metadata(rig, args))
    resumed = plan.next_step
    engine.start(held=True)
    problem = ""
    begin = time.monotonic()
    interrupted = False
    try:
        plan.run(rig, engine, progress)
    except KeyboardInterrupt:
        interrupted = True
    except ShakedownError as error:
        problem = str(error)
    status = engine.status
    return {
        "rig": rig.profile.key,
        "files": [str(p) for p in plan.done],
        "steps": len(plan.sequence.steps),
        "done": plan.next_step,
        "resumed_at": resumed,
        "took": time.monotonic() - begin,
        "gaps": status.gaps,
        "lost": status.lost,
        "overloads": status.overloads,
        "late": status.late,
        "interrupted": interrupted,
        "problem": problem or status.failure or None,
    }


def _print(result: dict[str, Any]) -> None:
    if "steps" in result:
        print(f"{result['done']} of {result['steps']} steps done, in {Path(result['files'][0]).parent}"
              if result["files"] else "no step was done")  # fmt: skip
        if result["interrupted"]:
            print("Stopped by you; the same command goes on where it stopped.")
    elif result["files"]:
        print(f"{', '.join(result['files'])}: {result['seconds']:.2f} s, {result['samples']} samples "
              f"at {result['rate']:g} Hz")  # fmt: skip
        rows = [(n, c["unit"], *(c.get(k, float("nan")) for k in ("mean", "rms", "min", "max")))
                for n, c in result["channels"].items()]  # fmt: skip
        print(table(["channel", "unit", "mean", "rms", "min", "max"], rows))
        drive = result["excitation"]
        if drive:
            phase = "" if drive["phase"] is None else f", phase {drive['phase']:.4f} rad at the first sample"
            print(f"drive: {drive['waveform']} {drive['amplitude']:g} at {drive['frequency']:g} Hz{phase}")
    print(f"gaps {result['gaps']} ({result['lost']} samples), overloads {result['overloads']}, "
          f"late blocks {result['late']}")  # fmt: skip
    for words in result.get("warnings", ()):
        print(f"shakedown: {words}.", file=sys.stderr)
    if result["problem"]:
        print(f"shakedown: {result['problem']}", file=sys.stderr)
