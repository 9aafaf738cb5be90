"""shakedown track: backbones and response curves, unstable motions included, tracked on the rig."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from analysis import DataError, Estimate, percent, with_error
from app import project_names as names
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
from app.tracking.request import Kind, TrackChannels, TrackRequest, check_model, track_channels
from app.tracking.told import STABILITY, told_branch, write_table
from app.tracking.work import TrackWork

if TYPE_CHECKING:
    import numpy as np

    from analysis import Model
    from analysis.tracking.tracking import TrackedBranch


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rig", help="name of a rig (see `shakedown rigs`) or a profile file")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--backbone", action="store_true",
        help="frequency and force over the response's amplitude at resonance, by phase control",
    )  # fmt: skip
    which.add_argument(
        "--response", action="store_true",
        help="a response curve through its folds: over the force with --at-frequency, over the "
        "frequency with --at-force",
    )  # fmt: skip
    parser.add_argument("--at-frequency", type=float, metavar="HZ", help="of a response curve over the force")
    parser.add_argument(
        "--at-force", type=float, metavar="F", help="amplitude, of a response curve over the frequency"
    )
    parser.add_argument(
        "--from", dest="begin", type=float, metavar="A",
        help="smallest response amplitude (default: a twentieth of the largest)",
    )  # fmt: skip
    parser.add_argument(
        "--to", type=float, metavar="A",
        help="largest response amplitude; the drive ends at 1.5 times as much",
    )  # fmt: skip
    parser.add_argument("--points", type=int, default=20, help="on the way out")
    parser.add_argument(
        "--near", type=float, metavar="HZ",
        help="where the resonance of small motions is, about (default: the rig's drive)",
    )  # fmt: skip
    parser.add_argument("--sensor", metavar="CHANNEL", help="the response (default: the rig's first channel)")
    parser.add_argument(
        "--force-sensor", metavar="CHANNEL", help="the force (default: the input of the rig's model)"
    )
    parser.add_argument(
        "--sees", choices=("displacement", "velocity", "acceleration"),
        help="what the sensor sees (default: by its unit)",
    )  # fmt: skip
    parser.add_argument(
        "--model", type=names.model, metavar="MODEL", help="set its branch beside the measured one"
    )
    parser.add_argument("--fit", type=names.fit, metavar="RESULT", help=names.FIT)
    parser.add_argument(
        "--out", required=True, metavar="FILE", help="recording to write, with target, correction and state"
    )
    parser.add_argument(
        "--table", metavar="FILE", help="the branch as a table (.csv), data for `identify` and `validate`"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the branch (png, svg or pdf)")
    add_virtual_options(parser)
    add_json_option(parser, FORCE_BUT_RECORDINGS)


def run(args: argparse.Namespace) -> int:
    profile = asked_profile(args)
    request = _request(args)
    channels = track_channels(profile, args.sensor, args.force_sensor, args.sees)
    model = _model(args, channels) if args.model else None
    out = recording_file(args.out)
    check_free(out)
    session = LoopSession(profile, args.fast, args.seed, out, terminal_progress())
    work = TrackWork(session.bench, profile, channels, request, session.progress)
    session.run(work.run, "tracking is over")
    result = told_branch(work, profile, channels, model, session.files, session.problem)
    problems = [session.problem] if session.problem else []
    if not tried(lambda: write_json(args.json, plain(result)), problems):
        _show(result)
    if work.branch is not None and work.branch.points:
        _write(work.branch, channels, model, args, problems)
    show_problems(problems)
    if problems:
        return 1
    return 0 if result["verdict"] == "tracked" else 3


def _request(args: argparse.Namespace) -> TrackRequest:
    if args.to is None:
        raise DataError("--to A names the largest response amplitude that may be reached.")
    if args.response and (args.at_frequency is None) == (args.at_force is None):
        raise DataError(
            "--response needs either --at-frequency (over the force) or --at-force (over the frequency)."
        )
    if args.backbone and (args.at_frequency is not None or args.at_force is not None):
        raise DataError(
            "--backbone finds frequency and force itself: leave --at-frequency and --at-force out."
        )
    if args.fit and not args.model:
        raise DataError("--fit needs --model, whose parameters it gives.")
    kind: Kind = "backbone" if args.backbone else "frequency" if args.at_frequency is None else "force"
    at = {"backbone": 0.0, "force": args.at_frequency, "frequency": args.at_force}[kind]
    return TrackRequest(kind, args.to, args.begin, args.points, at, args.near, args.seed)


def _model(args: argparse.Namespace, channels: TrackChannels) -> Model:
    from analysis import Identification
    from drivers.base.files import read_text
    from drivers.library import load_model

    model = load_model(args.model)
    check_model(model, channels)
    if args.fit:
        fit = Identification.from_json(read_text(args.fit, "a result of identify"))
        model = model.with_values({n: v for n, v in fit.values().items() if n in model.parameters})
    return model


def _write(
    branch: TrackedBranch, channels: TrackChannels, model: Model | None, args: argparse.Namespace,
    problems: list[str],
) -> None:  # fmt: skip
    if args.table:
        tried(lambda: write_table(branch, channels, args.table), problems)
    if args.plot:
        tried(lambda: _draw(branch, channels, model, args.plot), problems)


def _draw(branch: TrackedBranch, channels: TrackChannels, model: Model | None, path: str) -> None:
    from app.figures.tracked import save_tracked

    save_tracked(branch, channels.labels, _model_line(branch, channels, model), path)


def _model_line(
    branch: TrackedBranch, channels: TrackChannels, model: Model | None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """The model's branch: parameter and amplitude."""
    if model is None:
        return None
    from analysis.tracking.model_branch import model_branch

    return model_branch(model, channels.response.name, branch)


def _show(result: dict[str, Any]) -> None:
    if result["points"]:
        _show_points(result)
    if result["problem"] and not result["points"]:
        return  # which says it all
    print(f"{result['kind']}: {result['verdict']}" + (f": {result['reason']}" if result["reason"] else ""))
    for file in result["files"]:
        print(file)


def _show_points(result: dict[str, Any]) -> None:
    linear, loop = result["linear"], result["loop"]
    print(f"small motions: {linear['frequency']:.5g} Hz, damping {percent(linear['damping'], 3)}; delay of "
          f"the loop {1e3 * linear['delay']:.3g} ms, {loop['missed']} deadlines missed")  # fmt: skip
    model = "model_force" in result["points"][0]
    columns = ["frequency Hz", "amplitude", "force", "phase rad", "", *(["model's force"] if model else [])]
    print(table(columns, [_row(p, model) for p in result["points"]]))
    for fold in result["folds"]:
        place = (
            f"amplitude {fold['amplitude']:.4g}" if "amplitude" in fold else f"phase {fold['phase']:.3g} rad"
        )
        print(f"fold at {fold['over']} {with_error(Estimate(fold['at'], fold['stderr']))}, {place}")
    check = result["ramp_check"]
    if check is not None:
        print(f"half the ramp: {check['compared']} points again, largest difference "
              f"{percent(check['largest'])}")  # fmt: skip


def _row(p: dict[str, Any], model: bool) -> list[str]:
    numbers = [
        f"{p[name]:{form}} ± {p[f'{name}_stderr']:.1g}"
        for name, form in (("frequency", ".5f"), ("amplitude", ".5g"), ("force", ".5g"), ("phase", ".4f"))
    ]
    force = p.get("model_force")
    return [*numbers, STABILITY[p["stable"]], *(["" if force is None else f"{force:.5g}"] if model else [])]
