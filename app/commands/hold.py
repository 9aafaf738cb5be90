"""shakedown hold: unstable periodic orbits held on the rig by small corrections of its drive."""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError
from app import project_names as names
from app.loop_session import LoopSession
from app.output import FORCE_BUT_RECORDINGS, add_json_option, plain, table, terminal_progress, write_json
from app.rig_access import add_virtual_options, asked_profile, check_free, recording_file

if TYPE_CHECKING:
    import numpy as np

    from analysis import Identification, Model, Progress, Record, Subject
    from analysis.holding.dither import DitherResult
    from analysis.holding.hold import HeldOrbit
    from analysis.holding.plant import LoopPlant
    from analysis.holding.target import Target
    from app.loop_rig import EngineLoop
    from drivers.rig.profile import RigProfile

DITHER = 0.03  # rms of the dither test, of the drive's amplitude
REST_SECONDS = 3.0  # for a specimen to come to rest, and REST_PERIODS of the drive at least
REST_PERIODS = 20
DRAWS = 24  # of the parameters, for the errors of multipliers


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
    from drivers.formats import read

    if args.periods < 20 or args.longest < 1 or not args.wait > 0:
        raise DataError("--periods is at least 20, --longest at least 1 and --wait positive.")
    profile = asked_profile(args)
    record = read(args.record)
    fit, model = _fitted(args.fit)
    channels = _channels(profile, model, record)
    _same_drive(profile, record)
    if args.out is None and not args.list:
        raise DataError("--out FILE names the recording of what is held.")
    progress = terminal_progress()
    study = _Study(profile, record, fit, model, channels, args.longest, progress)
    if args.list:
        payload = study.listed()
        if not write_json(args.json, plain(payload)):
            _show_targets(payload)
        return 0
    chosen = _chosen(args, len(study.targets))
    result = _on_the_rig(profile, study, chosen, args, progress)
    if not write_json(args.json, plain(result)):
        _show(result)
    if result["problem"]:
        return 1
    return 0 if result["held"] else 3


def _fitted(path: str) -> tuple[Identification, Model]:
    from analysis import Identification, Model
    from drivers.base.files import read_text

    fit = Identification.from_json(read_text(path, "a result of identify"))
    if not fit.model_text:
        raise DataError(f"{path} does not hold the equations of its model: identify again.")
    if fit.verdict in ("misses", "cannot tell"):
        raise DataError(
            f"The model of {path} does not describe its record (verdict: {fit.verdict}): a loop that "
            "believes it would push the specimen about."
        )
    model = Model.from_toml(fit.model_text)
    return fit, model.with_values({n: v for n, v in fit.values().items() if n in model.parameters})


def _channels(profile: RigProfile, model: Model, record: Record) -> tuple[str, ...]:
    """The model's outputs that record and rig both have; the force must be on both, too."""
    on_rig = [c.name for c in profile.channels]
    for name in model.inputs:
        if name not in on_rig:
            raise DataError(f"The rig '{profile.key}' has no channel '{name}', the input of {model.name}.")
    found = tuple(name for name in model.outputs if name in on_rig and name in record)
    if not found:
        raise DataError(
            f"The rig '{profile.key}' measures none of {', '.join(model.outputs)}: {model.name} cannot be "
            "followed on it."
        )
    return found


def _same_drive(profile: RigProfile, record: Record) -> None:
    """Refuse a record of another rig or drive before anything moves."""
    from drivers.base.waveform import Sine
    from drivers.virtual.specimens import number_of

    drive, made = profile.drive, record.excitation
    if not isinstance(drive, Sine):
        raise DataError(f"The rig '{profile.key}' is not driven by a sine: its motion has no orbits to hold.")
    rig = record.metadata.get("rig")
    if rig is not None and rig != profile.key:
        raise DataError(
            f"The record was made on the rig '{rig}', not on '{profile.key}': its orbits are others."
        )
    number = number_of(profile) if profile.virtual else None
    if number is not None and record.metadata.get("specimen", number) != number:
        raise DataError(
            f"The record is of specimen {record.metadata['specimen']}, this one is {number}: its orbits are "
            "others."
        )
    if made is None or made.phase is None:
        raise DataError("The record does not know the phase of its drive: record it with this rig.")
    if made.frequency is None or made.amplitude is None:
        raise DataError("The record does not know its drive: record it with this rig.")
    if abs(made.frequency / drive.frequency - 1) > 1e-6 or abs(made.amplitude / drive.amplitude - 1) > 1e-3:
        raise DataError(
            f"The record was driven by {made.amplitude:g} at {made.frequency:g} Hz, the rig's drive is "
            f"{drive.amplitude:g} at {drive.frequency:g} Hz: orbits of the one are not those of the other."
        )


class _Study:
    """What is known before the rig moves: the plant, the orbits, what to expect of each."""

    def __init__(
        self, profile: RigProfile, record: Record, fit: Identification, model: Model,
        channels: tuple[str, ...], longest: int, progress: Progress,
    ) -> None:  # fmt: skip
        from analysis import prepare_subject
        from analysis.holding.plant import ActuatorPath
        from analysis.holding.target import orbit_targets
        from analysis.holding.tuning import plant_from_record

        assert profile.drive is not None
        self.profile, self.fit, self.model, self.record = profile, fit, model, record
        self.subject: Subject = prepare_subject(model, record, fit.values())
        amplitude = profile.drive.amplitude
        gain = _force_gain(self.subject, amplitude)
        nominal = ActuatorPath(gain, 0.0, 1.0 / profile.rate)
        progress.report(0.0, "the model beside the record")
        self.plant: LoopPlant = plant_from_record(self.subject, channels, profile.rate, amplitude, nominal)
        shot = orbit_targets(self.subject, self.plant.nodes, longest, progress)
        self.targets: list[Target] = [t for t in shot if not t.stable]
        self.stable = len(shot) - len(self.targets)
        if not self.targets:
            raise DataError("The record shows no unstable periodic orbit that the model has, too.")

    def listed(self) -> dict[str, Any]:
        return {
            "rig": self.profile.key,
            "model": self.model.name,
            "channels": self.plant.channels,
            "drive": {"frequency": self.plant.frequency, "amplitude": self.plant.amplitude},
            "model_gap": self.plant.process,
            "stable": self.stable,
            "orbits": [self._expected(i, t) for i, t in enumerate(self.targets, 1)],
        }

    def _expected(self, number: int, target: Target) -> dict[str, Any]:
        from analysis.holding.outlook import expected_control, longest_delay

        return {
            "number": number,
            "periods": target.multiple,
            "multipliers": _pairs(target.multipliers),
            "expected_wait": self.wait(target),
            "expected_control": expected_control(self.plant, target),
            "longest_delay": longest_delay(self.plant, target),
        }

    def wait(self, target: Target) -> float:
        """Periods until the free motion will be caught, on average."""
        import numpy as np

        from analysis.holding.linearise import linearise
        from analysis.holding.outlook import expected_wait
        from analysis.holding.regulator import regulate

        regulator = regulate(linearise(self.plant, target.states))
        phase = 2 * np.pi * self.subject.times / self.subject.base
        return expected_wait(self.plant, target, regulator, self.subject.states, phase)

    def draws(self) -> list[np.ndarray[Any, Any]]:
        """Values of the parameters as uncertain as the fit says; none where it does not say."""
        import numpy as np

        from analysis import knowledge_of

        try:
            known = knowledge_of(self.model, self.fit)
        except DataError:
            return []
        drawn = known.draws(DRAWS, np.random.default_rng(0))
        return [known.vector(values)[: len(self.model.parameters)] for values in drawn]


def _force_gain(subject: Subject, amplitude: float) -> float:
    """Units of the model's input for one volt, at the drive's frequency."""
    import numpy as np

    row = subject.record[subject.model.inputs[0]]
    theta = 2 * np.pi * subject.times / subject.base
    good = np.isfinite(row)
    tone = 2 * np.mean(row[good] * np.exp(-1j * theta[good]))
    if not abs(tone) > 0:
        raise DataError(f"The record's {subject.model.inputs[0]} does not follow the drive.")
    return float(np.copysign(abs(tone), tone.real) / amplitude)


def _chosen(args: argparse.Namespace, count: int) -> list[int]:
    if args.all:
        return list(range(count))
    for number in args.orbit:
        if not 1 <= number <= count:
            raise DataError(f"There is no orbit {number}: --list shows {count}.")
    return [number - 1 for number in dict.fromkeys(args.orbit)]


def _on_the_rig(
    profile: RigProfile, study: _Study, chosen: list[int], args: argparse.Namespace, progress: Progress
) -> dict[str, Any]:
    out = recording_file(args.out)
    check_free(out)
    session = LoopSession(profile, args.fast, args.seed, progress)
    work = _Work(session, study, args)
    session.run(lambda: work.run(chosen, out), "holding is over")
    progress.report(0.95, "multipliers")
    work.complete()
    return work.result()


class _Work:
    """The rig in motion: dither test, then one orbit after the other."""

    def __init__(self, session: LoopSession, study: _Study, args: argparse.Namespace) -> None:
        self._session, self._rig, self._engine = session, session.rig, session.engine
        self._study, self._args = study, args
        self._loop: Any = None  # status, as it was last
        self._dither: DitherResult | None = None
        self._plant = study.plant
        self._done: list[dict[str, Any]] = []
        self._held: dict[int, HeldOrbit] = {}  # what came of each orbit, by its number

    def _watch(self) -> None:
        self._session.watch()
        self._session.progress.report(0.0, "the loop is closed")

    def run(self, chosen: list[int], out: Path) -> None:
        from app.loop_rig import EngineLoop, modulated

        exciter = modulated(self._rig)
        self._check_room()
        self._engine.start(held=True)
        force = self._study.model.inputs[0]
        loop = EngineLoop(
            self._rig, self._engine, (*self._plant.channels, force), self._plant.frequency, self._watch
        )
        self._test(loop)
        self._session.record(out)
        self._drive(loop)
        for number in chosen:
            self._done.append(self._one(loop, number))
            self._loop = exciter.loop_status()

    def _check_room(self) -> None:
        from analysis.holding.holder import BOUND

        plant, limits = self._plant, self._study.profile.limits
        if plant.amplitude * (1 + 0.2 * BOUND) > limits.peak:
            raise DataError(
                f"The drive of {plant.amplitude:g} leaves no room for corrections below the limit of "
                f"{limits.peak:g}."
            )

    def _test(self, loop: EngineLoop) -> None:
        """Dither at rest: the loop's delay, the gain of its path, modes that only the sensors see."""
        import numpy as np

        from analysis.holding.dither import REPEATS, Dither, dither_sequence, read_dither, response
        from analysis.holding.plant import ActuatorPath
        from analysis.holding.tuning import tuned_to_record
        from app.loop_rig import modulated
        from drivers.base.waveform import Sine

        plant, exciter = self._plant, self._rig.exciter
        assert exciter is not None
        sequence = dither_sequence(plant.frequency, plant.rate, DITHER * plant.amplitude)
        exciter.play(Sine(0.0, plant.frequency))  # no drive: only the corrections pass
        rest = max(REST_SECONDS, REST_PERIODS / plant.frequency)
        still = loop.seconds(rest)
        loop.install(Dither((*plant.channels, self._study.model.inputs[0]), sequence))
        length = len(sequence)
        loop.seconds(1.0 + length / plant.rate)  # the first answer is no steady one
        seen = loop.seconds(REPEATS * length / plant.rate)
        self._loop = modulated(self._rig).loop_status()
        loop.let_go("the dither test is over")
        loop.seconds(0.2)
        found = response(seen.samples, seen.command, sequence, plant.rate)
        states = self._at_rest(still.samples[:-1, -max(20, length // 4) :].mean(axis=1))
        start = ActuatorPath(plant.path.gain, 0.0, self._loop.delay, self._loop.jitter)
        self._dither = read_dither(found, plant.model, plant.channels, states, 1 / plant.rate, start)
        self._plant = replace(plant, path=self._dither.path, modes=self._dither.modes)
        if self._dither.modes:  # what the model alone could not follow
            self._plant = tuned_to_record(self._plant, self._study.subject)
        if not np.isfinite(self._plant.path.delay):
            raise DataError("The dither test gave no delay.")

    def _at_rest(self, outputs: Any) -> Any:
        """The model's equilibrium that looks as the specimen does at rest."""
        import numpy as np

        from analysis import equilibria

        model, plant = self._study.model, self._plant
        spans = {
            name: (float(row.min() - np.ptp(row)), float(row.max() + np.ptp(row)))
            for name, row in zip(model.states, self._study.subject.states, strict=True)
        }
        from analysis import driven_by_a_tone

        free = driven_by_a_tone(model, plant.frequency, 0.0)
        found = [e.state for e in equilibria(free, spans)]
        if not found:
            raise DataError(f"{model.name} has no state of rest: the dither test cannot be read.")
        y = np.empty(len(model.outputs))
        kernels = model.kernels()

        def away(state: Any) -> float:
            kernels.out(0.0, np.ascontiguousarray(state), np.zeros(1), model.values(), y)
            seen = y[plant.rows]
            return float(np.sum((seen - outputs) ** 2))

        return min(found, key=away)

    def _drive(self, loop: EngineLoop) -> None:
        """Start the rig's own drive and let it settle."""
        from drivers.acquisition.rise import advance_until_risen

        self._rig.play()
        advance_until_risen(self._rig, self._engine, lambda _: self._watch())
        self._engine.advance(max(self._study.profile.settle, 0.1), lambda _: self._watch())
        loop.forget()

    def _one(self, loop: EngineLoop, number: int) -> dict[str, Any]:
        from analysis.holding.hold import Holding
        from analysis.holding.outlook import MOST_CONTROL, expected_control, longest_delay

        target = self._study.targets[number]
        told = {
            "number": number + 1,
            "periods": target.multiple,
            "model_multipliers": _pairs(target.multipliers),
            "expected_wait": self._study.wait(target),
        }
        control = expected_control(self._plant, target)
        if control > MOST_CONTROL:
            limit = longest_delay(self._plant, target)
            return told | {
                "verdict": "not tried",
                "reason": f"this orbit needs less than {1e3 * limit:.2g} ms; the loop has "
                f"{1e3 * self._plant.path.delay:.2g} ms",
            }
        progress = self._session.progress.part(0.0, 1.0)
        held = Holding(
            _Sensors(loop, len(self._plant.channels)), self._plant, target, self._study.draws(),
            self._args.wait, progress,
        ).run(self._args.periods)  # fmt: skip
        self._held[number + 1] = held
        return told | {"expected_control": control} | _described(held, self._plant)

    def complete(self) -> None:
        """With the rig at rest: multipliers of the model with what the record shows it to miss."""
        from analysis.holding.completed import completed_models, completed_multipliers

        held = {number: orbit for number, orbit in self._held.items() if orbit.held}
        completed = completed_models(self._study.subject, self._plant) if held else []
        for told in self._done if completed else ():
            if told["number"] in held:
                found, errors = completed_multipliers(self._plant, held[told["number"]], completed)
                told |= {"multipliers": _pairs(found), "multiplier_errors": errors}

    def result(self) -> dict[str, Any]:
        path, dither, loop = self._plant.path, self._dither, self._loop
        return {
            "rig": self._study.profile.key,
            "model": self._study.model.name,
            "channels": self._plant.channels,
            "drive": {"frequency": self._plant.frequency, "amplitude": self._plant.amplitude},
            "files": self._session.files,
            "loop": None if loop is None else dict(vars(loop)),
            "path": None
            if dither is None
            else {"gain": path.gain, "lag": path.lag, "delay": path.delay, "jitter": path.jitter},
            "modes": [
                {"frequency": m.frequency / (2 * math.pi), "damping": m.damping} for m in self._plant.modes
            ],
            "orbits": self._done,
            "offered": len(self._done),
            "held": sum(o["verdict"] == "held" for o in self._done),
            "problem": self._session.problem or None,
        }  # fmt: skip


class _Sensors:
    """The loop without the channel of the force, which holding does not need."""

    def __init__(self, loop: EngineLoop, channels: int) -> None:
        self._loop, self._channels = loop, channels

    def install(self, controller: Any) -> None:
        self._loop.install(controller)

    def run(self, periods: float) -> Any:
        stretch = self._loop.run(periods)
        return replace(stretch, samples=stretch.samples[: self._channels])


def _described(held: HeldOrbit, plant: LoopPlant) -> dict[str, Any]:
    import numpy as np

    names = plant.model.states
    count = held.target.states.shape[1]
    return {
        "verdict": held.verdict,
        "reason": held.reason,
        "wait": held.wait,
        "averaged_periods": held.periods,
        "corrections": held.corrections,
        "losses": held.losses,
        "mean_control": held.mean_control,
        "floor": held.floor,
        "control": held.control,
        "phase": (2 * np.pi * held.target.multiple * np.arange(count) / count).tolist(),
        "orbit": {
            name: {"mean": row, "stderr": band}
            for name, row, band in zip(plant.channels, held.orbit, held.band, strict=False)
        },
        "states": dict(zip(names, held.target.states, strict=True)),
        "multipliers": _pairs(held.multipliers),
        "multiplier_errors": held.multiplier_errors,
    }


def _pairs(multipliers: np.ndarray[Any, Any]) -> list[list[float]]:
    return [[m.real, m.imag] for m in multipliers.tolist()]


def _multiplier(pairs: list[list[float]]) -> str:
    return ", ".join(f"{re:.4g}" + (f"{im:+.3g}i" if im else "") for re, im in pairs[:2])


def _show_targets(payload: dict[str, Any]) -> None:
    count = len(payload["orbits"])
    print(f"{count} unstable orbits of {payload['model']} near the record, seen by "
          f"{', '.join(payload['channels'])}")  # fmt: skip
    rows = [
        [o["number"], o["periods"], _multiplier(o["multipliers"]), f"{o['expected_wait']:.0f}",
         f"{100 * o['expected_control']:.2g}", f"{1e3 * o['longest_delay']:.2g}"]
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
        print(f"mode beside the model: {mode['frequency']:.4g} Hz, damping {100 * mode['damping']:.2g} %")
    if result["orbits"]:
        print(f"{result['held']} of {result['offered']} orbits held")
        _show_orbits(result["orbits"])
    for file in result["files"]:
        print(file)
    if result["problem"]:
        print(f"shakedown: {result['problem']}", file=sys.stderr)


def _show_orbits(orbits: list[dict[str, Any]]) -> None:
    rows = [
        [o["number"], o["periods"], o["verdict"], _number(o, "wait", 1, ".0f"), o.get("averaged_periods", ""),
         _number(o, "mean_control", 100, ".2g"), _number(o, "floor", 100, ".2g"),
         _number(o, "control", 100, ".2g"), _multiplier(o["model_multipliers"]), _measured_multiplier(o)]
        for o in orbits
    ]  # fmt: skip
    print(table(["orbit", "k", "verdict", "wait", "periods", "mean control %", "floor %", "rms %",
                 "model's multipliers", "on the orbit"], rows))  # fmt: skip
    for o in orbits:
        if o["verdict"] != "held":
            print(f"! orbit {o['number']}: {o['verdict']}: {o['reason']}.")


def _measured_multiplier(o: dict[str, Any]) -> str:
    """The largest multiplier on the orbit that was held, with its error where it is real."""
    from analysis import Estimate, with_error

    pairs = o.get("multipliers", [])
    if not len(pairs):
        return ""
    (re, im), error = pairs[0], float(o["multiplier_errors"][0])
    if im or not math.isfinite(error):
        return _multiplier(pairs[:1])
    return with_error(Estimate.normal(re, error))


def _number(row: dict[str, Any], name: str, factor: float, form: str) -> str:
    value = row.get(name)
    return "" if value is None or value != value else f"{factor * value:{form}}"
