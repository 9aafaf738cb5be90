"""shakedown track: backbones and response curves, unstable motions included, tracked on the rig."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError
from app import project_names as names
from app.loop_session import LoopSession
from app.output import FORCE_BUT_RECORDINGS, add_json_option, plain, table, terminal_progress, write_json
from app.rig_access import add_virtual_options, asked_profile, check_free, recording_file

if TYPE_CHECKING:
    import numpy as np

    from analysis import Model
    from analysis.tracking.measure import BranchValue
    from analysis.tracking.tracking import Plan, TrackedBranch, TrackedPoint
    from app.loop_rig import EngineLoop
    from drivers.rig.profile import ChannelProfile, RigProfile

KINDS = {"backbone": "backbone", "force": "response over force", "frequency": "response over frequency"}
LEAST_RESPONSE = 8
ROOM = 0.95  # of the largest drive that the limits allow
UNITS = {
    "m/s": "velocity",
    "mm/s": "velocity",
    "m/s^2": "acceleration",
    "m/s²": "acceleration",
    "g": "acceleration",
}


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
    _check(args)
    channels = _channels(profile, args)
    model = _model(args, channels) if args.model else None
    out = recording_file(args.out)
    check_free(out)
    session = LoopSession(profile, args.fast, args.seed, terminal_progress())
    work = _Work(session, profile, channels, args)
    session.run(lambda: work.run(out), "tracking is over")
    result = _described(work, session, profile, channels, model)
    if work.branch is not None and work.branch.points:
        _write(work.branch, channels, model, args)
    if not write_json(args.json, plain(result)):
        _show(result)
    if session.problem:
        print(f"shakedown: {session.problem}", file=sys.stderr)
        return 1
    return 0 if result["verdict"] == "tracked" else 3


def _check(args: argparse.Namespace) -> None:
    if args.points < 3:
        raise DataError("--points is at least 3.")
    if args.response and args.points < LEAST_RESPONSE:
        raise DataError(f"Folds are found with {LEAST_RESPONSE} points at least: --points.")
    if args.to is None or not args.to > 0:
        raise DataError("--to A names the largest response amplitude that may be reached.")
    if args.begin is not None and not 0 < args.begin < args.to:
        raise DataError("--from is a positive amplitude below --to.")
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


class _Channels:
    """The two channels of the loop, and what the first of them sees."""

    def __init__(self, response: ChannelProfile, force: ChannelProfile, sees: str) -> None:
        self.response, self.force, self.sees = response, force, sees

    @property
    def names(self) -> tuple[str, str]:
        return self.response.name, self.force.name

    @property
    def units(self) -> dict[str, str]:
        return {"amplitude": self.response.unit, "force": self.force.unit}


def _channels(profile: RigProfile, args: argparse.Namespace) -> _Channels:
    by_name = {c.name: c for c in profile.channels}

    def channel(name: str) -> ChannelProfile:
        if name not in by_name:
            raise DataError(
                f"The rig '{profile.key}' has no channel '{name}': there are {', '.join(by_name)}."
            )
        return by_name[name]

    force = args.force_sensor
    if force is None:
        from drivers.library import load_model

        inputs = load_model(profile.model).inputs if profile.model else ()
        found = [name for name in (*inputs, "f", "force") if name in by_name]
        if not found:
            raise DataError(f"Which channel of '{profile.key}' is the force? Name it by --force-sensor.")
        force = found[0]
    response = channel(args.sensor) if args.sensor else profile.channels[0]
    if response.name == force:
        raise DataError(
            f"'{force}' cannot be response and force at once: name them by --sensor and --force-sensor."
        )
    return _Channels(response, channel(force), args.sees or UNITS.get(response.unit, "displacement"))


def _model(args: argparse.Namespace, channels: _Channels) -> Model:
    from analysis import Identification
    from drivers.base.files import read_text
    from drivers.library import load_model

    model = load_model(args.model)
    if channels.response.name not in model.outputs or tuple(model.inputs) != (channels.force.name,):
        raise DataError(
            f"{model.name} must have the output '{channels.response.name}' and the one measured input "
            f"'{channels.force.name}' to be set beside the branch."
        )
    if args.fit:
        fit = Identification.from_json(read_text(args.fit, "a result of identify"))
        model = model.with_values({n: v for n, v in fit.values().items() if n in model.parameters})
    return model


class _Rig:
    """The loop as tracking needs it (see analysis.tracking.tracking.TrackingRig)."""

    def __init__(self, loop: EngineLoop, exciter: Any) -> None:
        self._loop, self._exciter = loop, exciter
        self.install, self.let_go, self.seconds = loop.install, loop.let_go, loop.seconds

    def why_open(self) -> str:
        status = self._exciter.loop_status()
        return str(status.reason) if status.state in ("open", "letting go") else ""


class _Work:
    """The rig in motion: linear test, then the branch."""

    def __init__(
        self, session: LoopSession, profile: RigProfile, channels: _Channels, args: argparse.Namespace
    ) -> None:
        self._session, self._profile, self._channels, self._args = session, profile, channels, args
        self._visited = 0
        self.loop: Any = None
        self.branch: TrackedBranch | None = None

    def _watch(self) -> None:
        self._session.watch()
        self._report("the loop is closed")

    def _report(self, said: str) -> None:
        self._session.progress.report(min(0.99, self._visited / (1.6 * self._args.points)), said)

    def _seen(self, point: TrackedPoint) -> None:
        self._visited += 1
        p = point.point
        self._report(
            f"{p.frequency.value:.5g} Hz, amplitude {p.amplitude.value:.4g}, force {p.force.value:.4g}"
        )

    def run(self, out: Path) -> None:
        import numpy as np

        from analysis.tracking.tracking import Tracking
        from app.loop_rig import EngineLoop, modulated
        from drivers.base.waveform import Sine

        session, profile, limits = self._session, self._profile, self._profile.limits
        rig = session.rig
        exciter = modulated(rig)
        assert rig.exciter is not None
        near = self._near()
        limits.check_frequency(near)
        session.engine.start(held=True)
        loop = EngineLoop(rig, session.engine, self._channels.names, near, self._watch)
        band = (limits.lowest_frequency, limits.highest_frequency)
        peak = ROOM * min(limits.peak, limits.slew / (2 * np.pi * min(2.5 * near, limits.highest_frequency)))
        tracking = Tracking(
            _Rig(loop, exciter),
            self._channels.names,
            profile.rate,
            peak,
            band,
            self._channels.sees,
            self._seen,
        )
        session.record(out)
        rig.exciter.play(Sine(0.0, near))  # no drive of its own: all of it is the loop's
        loop.seconds(1.0)
        plant = tracking.test(near)
        self._too_slow(plant.delay, plant.frequency)
        self.branch = tracking.track(self._plan(plant), plant, np.random.default_rng(self._args.seed))
        self.loop = exciter.loop_status()

    def _near(self) -> float:
        from drivers.base.waveform import Sine

        if self._args.near is not None:
            return float(self._args.near)
        if isinstance(self._profile.drive, Sine):
            return self._profile.drive.frequency
        raise DataError("Where is the resonance, about? --near HZ says it.")

    @staticmethod
    def _too_slow(delay: float, frequency: float) -> None:
        from analysis.tracking.tracker import LONGEST_DELAY

        if delay * frequency > LONGEST_DELAY:
            raise DataError(
                f"This branch needs a delay below {1e3 * LONGEST_DELAY / frequency:.2g} ms; the loop has "
                f"{1e3 * delay:.2g} ms."
            )

    def _plan(self, plant: Any) -> Plan:
        import numpy as np

        from analysis.tracking.tracking import Plan, phases_through

        args = self._args
        begin = args.begin if args.begin is not None else 0.05 * args.to
        amplitudes = tuple(float(a) for a in np.linspace(begin, args.to, args.points))
        if args.backbone:
            return Plan("backbone", amplitudes)
        if args.at_frequency is not None:
            return Plan("force", amplitudes, float(args.at_frequency))
        return Plan("frequency", phases_through(plant, args.points), float(args.at_force), float(args.to))


def _described(
    work: _Work, session: LoopSession, profile: RigProfile, channels: _Channels, model: Model | None
) -> dict[str, Any]:
    branch = work.branch
    told: dict[str, Any] = {
        "rig": profile.key,
        "channels": {"response": channels.response.name, "force": channels.force.name},
        "units": channels.units,
        "files": session.files,
        "loop": None if work.loop is None else dict(vars(work.loop)),
        "verdict": None,
        "reason": "",
        "points": [],
        "folds": [],
        "problem": session.problem or None,
    }
    if branch is None:
        return told
    beside = _beside(branch, channels, model)
    plant, ramp = branch.plant, branch.ramp
    return told | {
        "kind": KINDS[branch.plan.kind],
        "linear": {
            "frequency": plant.frequency, "damping": plant.damping, "delay": plant.delay, "skew": plant.skew,
            "skew_error": plant.skew_error, "force_gain": plant.force_gain, "misfit": plant.misfit,
        },
        "verdict": branch.verdict,
        "reason": branch.reason,
        "periods_a_point": branch.periods,
        "ramp_check": None if ramp is None else dict(vars(ramp)),
        "points": [
            _point(p) | {"stable": branch.stable(p), **(beside[i] if beside else {})}
            for i, p in enumerate(branch.in_order())
        ],
        "folds": [
            {
                "over": "force" if branch.plan.kind == "force" else "frequency",
                "at": fold.parameter.value, "stderr": fold.parameter.error,
                "amplitude" if branch.plan.kind == "force" else "phase": fold.goal.value,
                "place_stderr": fold.goal.error,
            }
            for fold in branch.folds
        ],
    }  # fmt: skip


def _point(tracked: TrackedPoint) -> dict[str, Any]:
    p = tracked.point
    values: dict[str, BranchValue] = {n: getattr(p, n) for n in ("frequency", "amplitude", "phase", "force")}
    numbers = {n: v.value for n, v in values.items()} | {f"{n}_stderr": v.error for n, v in values.items()}
    return numbers | {
        "goal": tracked.goal, "pass": tracked.passed, "ramp_periods": tracked.ramp,
        "averaged_periods": p.periods, "drifting": p.drifting, "force_distortion": p.force_distortion,
    }  # fmt: skip


def _beside(branch: TrackedBranch, channels: _Channels, model: Model | None) -> list[dict[str, Any]]:
    """The force and phase that the model needs for each measured motion."""
    if model is None:
        return []
    import numpy as np

    from analysis import ImposedMotions

    solver, motion, rows = ImposedMotions(model, channels.response.name), None, []
    for p in branch.in_order():
        found = solver.solve(model.values(), p.point.frequency.value, p.point.amplitude.value, motion)
        motion = found or motion
        force = None if found is None else abs(found.force)
        phase = None if found is None else -float(np.angle(found.force))
        rows.append({"model_force": force, "model_phase": phase})
    return rows


def _write(branch: TrackedBranch, channels: _Channels, model: Model | None, args: argparse.Namespace) -> None:
    from drivers.formats.curves import write_curve

    if args.table:
        words = {True: "stable", False: "unstable", None: ""}
        order = branch.in_order()
        more: dict[str, list[str]] = {
            "stability": [words[branch.stable(p)] for p in order],
            "pass": [p.passed for p in order],
        }
        write_curve(branch.curve(channels.response.name), args.table, channels.units, more)
    if args.plot:
        from app.figures.tracked import save_tracked

        labels = tuple(
            f"{c.name} [{c.unit}]" if c.unit else c.name for c in (channels.response, channels.force)
        )
        save_tracked(branch, (labels[0], labels[1]), _model_line(branch, channels, model), args.plot)


def _model_line(
    branch: TrackedBranch, channels: _Channels, model: Model | None
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]] | None:
    """The model's branch: parameter and amplitude."""
    if model is None:
        return None
    from analysis.tracking.model_branch import model_branch

    return model_branch(model, channels.response.name, branch)


def _show(result: dict[str, Any]) -> None:
    if not result["points"]:
        return
    linear, loop = result["linear"], result["loop"]
    print(f"small motions: {linear['frequency']:.5g} Hz, damping {100 * linear['damping']:.3g} %; delay of "
          f"the loop {1e3 * linear['delay']:.3g} ms, {loop['missed']} deadlines missed")  # fmt: skip
    model = "model_force" in result["points"][0]
    columns = ["frequency Hz", "amplitude", "force", "phase rad", "", *(["model's force"] if model else [])]
    print(table(columns, [_row(p, model) for p in result["points"]]))
    for fold in result["folds"]:
        place = (
            f"amplitude {fold['amplitude']:.4g}" if "amplitude" in fold else f"phase {fold['phase']:.3g} rad"
        )
        print(f"fold at {fold['over']} {fold['at']:.5g} ± {fold['stderr']:.1g}, {place}")
    check = result["ramp_check"]
    if check is not None:
        print(f"half the ramp: {check['compared']} points again, largest difference "
              f"{100 * check['largest']:.2g} %")  # fmt: skip
    print(f"{result['kind']}: {result['verdict']}" + (f": {result['reason']}" if result["reason"] else ""))
    for file in result["files"]:
        print(file)


def _row(p: dict[str, Any], model: bool) -> list[str]:
    words = {True: "stable", False: "unstable", None: ""}
    numbers = [
        f"{p[name]:{form}} ± {p[f'{name}_stderr']:.1g}"
        for name, form in (("frequency", ".5f"), ("amplitude", ".5g"), ("force", ".5g"), ("phase", ".4f"))
    ]
    force = p.get("model_force")
    return [*numbers, words[p["stable"]], *(["" if force is None else f"{force:.5g}"] if model else [])]
