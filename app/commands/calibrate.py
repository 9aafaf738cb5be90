"""`shakedown calibrate`: a sound card's numbers to volts, and a sensor's volts to its unit, step by step."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError
from app.ctrl_c import CtrlC
from app.output import add_json_option, write_json
from app.rig_access import check_free, open_for_command

if TYPE_CHECKING:
    from app.calibration import Calibration, Samples, SensorFound
    from drivers.base.waveform import Sine
    from drivers.rig.profile import Rig, RigProfile

PATIENCE = 30.0  # s for the drive to rise and for the card's samples to come


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rig", help="name or profile file of the rig")
    parser.add_argument(
        "--volts", type=float, metavar="RMS",
        help="what a voltmeter at the output shows while the tone plays (default: asked for)",
    )  # fmt: skip
    parser.add_argument(
        "--level", type=float, default=0.1, help="of the tone, as a share of what the output can do"
    )
    parser.add_argument("--frequency", type=float, default=100.0, metavar="HZ", help="of the tone")
    parser.add_argument("--sensor", metavar="CHANNEL", help="also: this sensor, on a motion that is known")
    parser.add_argument("--known", type=float, metavar="RMS", help="that motion, in the channel's unit")
    parser.add_argument("--at", type=float, metavar="HZ", help="its frequency (default: the strongest)")
    parser.add_argument(
        "--values", type=float, nargs="+", metavar="X",
        help="instead of a motion: values that stand still, asked for one after the other",
    )  # fmt: skip
    parser.add_argument(
        "--only-sensor", action="store_true", help="leave the volts as they are; for any rig, shaker off"
    )
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="to listen for")
    parser.add_argument("--out", metavar="FILE", help="the new profile (default: RIG_calibrated.toml)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from app.calibration import Calibration
    from drivers.base.files import read_text
    from drivers.rig.profile import load_rig, rig_files, rig_from_text

    profile = load_rig(args.rig)
    out = Path(args.out or f"{profile.key}_calibrated.toml")
    if args.out is None:
        check_free(out)
    _check(args, profile)
    found = Calibration() if args.only_sensor else _volts(args, profile)
    if args.sensor:
        standing = args.values is not None
        sensor = _values(args, profile) if standing else _motion(args, profile, found.input)
        found = replace(found, sensor=sensor)
    path = rig_files().get(args.rig, Path(args.rig))
    text = found.text(read_text(path, "a rig profile"), time.strftime("%Y-%m-%d"))
    rig_from_text(text, out.stem, out.name)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror or error}.") from None
    if not write_json(args.json, _payload(found, profile, out)):
        print("\n".join([*found.words(profile), f"{out} is the rig as calibrated."]))
    return 0


def _check(args: argparse.Namespace, profile: RigProfile) -> None:
    """Refuse before anything sounds what could only fail after it."""
    from app.calibration import check_sensor
    from drivers.rig.calibration import card_profile

    if args.only_sensor and not args.sensor:
        raise DataError("--only-sensor needs --sensor CHANNEL.")
    if args.values is not None and (not args.sensor or args.known is not None or args.at is not None):
        raise DataError("--values needs --sensor CHANNEL, and neither --known nor --at.")
    if not args.only_sensor:
        card_profile(profile)
    if not 0 < args.level <= 1 or not 0.2 <= args.seconds <= 600 or not args.frequency > 0:
        raise DataError("--level is from 0 to 1, --seconds from 0.2 to 600, --frequency positive.")
    if args.sensor:
        check_sensor(profile, args.sensor, args.values is not None)


def _volts(args: argparse.Namespace, profile: RigProfile) -> Calibration:
    """Play the tone, have the voltmeter read, and compare with the loop-back."""
    from app.calibration import card_tone, card_volts, check_card

    tone = card_tone(profile, args.level, args.frequency)
    with _open(profile) as listening:
        listening.play(tone)
        rate = listening.rig.source.rate
        heard = listening.hear(args.seconds, tone)
        check_card(profile, tone, heard, rate)
        volts = args.volts
        if volts is None:
            volts = _ask(f"A tone of {args.frequency:g} Hz plays. Volts (rms) at the output: ", listening)
    return card_volts(profile, tone, volts, heard, rate)


def _motion(args: argparse.Namespace, profile: RigProfile, scale: float | None) -> SensorFound:
    """Listen to a sensor on a known motion, the shaker off."""
    from app.calibration import by_known_motion, channel_of

    known = args.known
    if known is None:
        unit = channel_of(profile, args.sensor).unit
        known = _ask(f"Put '{args.sensor}' on a known motion and switch that on. Its size (rms) in {unit}: ")
    with _open(_silent(profile)) as listening:
        heard = listening.hear(args.seconds)
        rate = listening.rig.source.rate
    return by_known_motion(profile, args.sensor, known, heard, rate, args.at, scale)


def _values(args: argparse.Namespace, profile: RigProfile) -> SensorFound:
    """Listen to a sensor at one known value after the other, the shaker off."""
    from app.calibration import by_known_values, channel_of, standing_point

    unit, points = channel_of(profile, args.sensor).unit, []
    with _open(_silent(profile)) as listening:
        for value in args.values:
            _answer(f"Bring '{args.sensor}' to {f'{value:g} {unit}'.strip()} and press Enter: ", listening)
            listening.skip()
            points.append(standing_point(profile, args.sensor, value, listening.hear(args.seconds)))
    return by_known_values(profile, args.sensor, points)


def _silent(profile: RigProfile) -> RigProfile:
    return replace(profile, instruments={k: v for k, v in profile.instruments.items() if k != "exciter"})


class _open:
    """A rig that runs while it is listened to; Ctrl-C and every end of this block ramp it down."""

    def __init__(self, profile: RigProfile) -> None:
        from drivers.acquisition.engine import Engine

        self.rig: Rig = open_for_command(profile, False, 0)
        self._engine = Engine(self.rig.source, self.rig.exciter)
        self._ctrl_c = CtrlC(at_once=self.rig.emergency_stop)

    def __enter__(self) -> _open:
        self._ctrl_c.__enter__()
        try:
            self._queue = self._engine.subscribe(600.0)
            self._engine.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def play(self, waveform: Sine) -> None:
        if self.rig.exciter is not None:
            self.rig.exciter.play(waveform)

    def skip(self) -> None:
        """Forget what came before now."""
        self._queue.read()

    def hear(self, seconds: float, tone: Sine | None = None) -> Samples:
        """Samples of all channels without a gap or an overload; with a tone, from when it is steady."""
        from app.calibration import Listener

        source = self.rig.source
        listener = Listener([c.name for c in source.channels], round(seconds * source.rate), tone)
        deadline = time.monotonic() + PATIENCE + seconds
        while (heard := listener.samples()) is None:
            self.look()
            listener.take(self._queue.read())
            if time.monotonic() > deadline:
                raise DataError("The tone did not become steady: nothing was calibrated.")
            time.sleep(0.02)
        return heard

    def look(self) -> None:
        """A sign of life; an error if the drive or the stream has ended."""
        self.rig.beat()
        self._ctrl_c.check()
        self.rig.check_drive()
        if not self._engine.status.running:
            raise DataError(self._engine.status.failure or "The source has ended.")

    def __exit__(self, *_: object) -> None:
        try:
            if self.rig.exciter is not None:
                self.rig.exciter.stop("calibrated")
            self._engine.stop()
            self.rig.close()
        finally:
            self._ctrl_c.__exit__(None, None, None)


def _ask(question: str, listening: _open | None = None) -> float:
    """A number from the person at the terminal, while the tone plays on."""
    try:
        return float(_answer(question, listening).replace(",", "."))
    except ValueError:
        raise DataError("A number was asked for: nothing was calibrated.") from None


def _answer(question: str, listening: _open | None = None) -> str:
    """A line from the person at the terminal, while the rig goes on."""
    from concurrent.futures import ThreadPoolExecutor

    print(question, end="", file=sys.stderr, flush=True)
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(sys.stdin.readline)
    pool.shutdown(wait=False)
    while not answer.done():
        if listening is not None:
            listening.look()
        time.sleep(0.05)
    if not (line := answer.result()):
        raise DataError("Nobody answers at this terminal: nothing was calibrated.")
    return line


def _payload(found: Calibration, profile: RigProfile, out: Path) -> dict[str, Any]:
    answer: dict[str, Any] = {"rig": profile.key}
    if found.output is not None:
        answer |= {"output_full_scale": found.output, "input_full_scale": found.input}
    if found.sensor is not None:
        told = asdict(found.sensor)
        if found.sensor.zero is None:
            del told["zero"], told["deviation"]
        answer["sensor"] = told
    return {**answer, "out": str(out)}
