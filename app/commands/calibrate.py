"""`shakedown calibrate`: a sound card's numbers to volts, and a sensor's volts to its unit, step by step."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from analysis import DataError
from app.ctrl_c import CtrlC
from app.output import add_json_option, write_json
from app.profile_text import edited
from app.rig_access import check_free, open_for_command

if TYPE_CHECKING:
    import numpy as np

    from drivers.base.waveform import Waveform
    from drivers.rig.profile import ChannelProfile, Rig, RigProfile

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
        "--only-sensor", action="store_true", help="leave the volts as they are; for any rig, shaker off"
    )
    parser.add_argument("--seconds", type=float, default=2.0, metavar="S", help="to listen for")
    parser.add_argument("--out", metavar="FILE", help="the new profile (default: RIG_calibrated.toml)")
    add_json_option(parser)


def run(args: argparse.Namespace) -> int:
    from drivers.base.files import read_text
    from drivers.rig.profile import load_rig, rig_files, rig_from_text

    profile = load_rig(args.rig)
    out = Path(args.out or f"{profile.key}_calibrated.toml")
    if args.out is None:
        check_free(out)
    _check(args, profile)
    found: dict[str, Any] = {"rig": profile.key}
    channels: dict[str, dict[str, Any]] = {}
    instruments: dict[str, dict[str, Any]] = {}
    today = time.strftime("%Y-%m-%d")
    if not args.only_sensor:
        found["output_full_scale"], found["input_full_scale"] = _volts(args, profile)
        instruments = {
            "source": {"full_scale": found["input_full_scale"]},
            "exciter": {"full_scale": found["output_full_scale"]},
        }
    if args.sensor:
        found["sensor"] = _sensor(args, profile, found.get("input_full_scale"))
        channels = {args.sensor: {"sensitivity": found["sensor"]["sensitivity"], "calibrated": today}}
    path = rig_files().get(args.rig, Path(args.rig))
    text = edited(read_text(path, "a rig profile"), channels, instruments)
    rig_from_text(text, out.stem, out.name)
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DataError(f"{out} cannot be written: {error.strerror or error}.") from None
    found["out"] = str(out)
    if not write_json(args.json, found):
        _print(found, profile)
    return 0


def _check(args: argparse.Namespace, profile: RigProfile) -> None:
    """Refuse before anything sounds what could only fail after it."""
    from drivers.rig.calibration import card_profile

    if args.only_sensor and not args.sensor:
        raise DataError("--only-sensor needs --sensor CHANNEL.")
    if not args.only_sensor:
        card_profile(profile)
    if not 0 < args.level <= 1 or not 0.2 <= args.seconds <= 600 or not args.frequency > 0:
        raise DataError("--level is from 0 to 1, --seconds from 0.2 to 600, --frequency positive.")
    if args.sensor:
        _channel(profile, args.sensor)


def _channel(profile: RigProfile, name: str) -> ChannelProfile:
    for channel in profile.channels:
        if channel.name == name:
            return channel
    known = ", ".join(c.name for c in profile.channels)
    raise DataError(f"The rig '{profile.key}' has no channel '{name}': it has {known}.")


def _volts(args: argparse.Namespace, profile: RigProfile) -> tuple[float, float]:
    """Play the tone, have the voltmeter read, and compare with the loop-back."""
    from drivers.base.waveform import Sine
    from drivers.rig.calibration import card_profile, card_scale, clean_tone

    loopback = card_profile(profile)
    played = args.level * float(profile.instruments["exciter"].get("full_scale", 1.0))
    with _open(profile) as listening:
        listening.play(Sine(played, args.frequency))
        signal = listening.hear(args.seconds, driven=True)[_row(profile, loopback.name)]
        heard = clean_tone(signal, listening.rig.source.rate, args.frequency, loopback.name)
        volts = args.volts
        if volts is None:
            volts = _ask(f"A tone of {args.frequency:g} Hz plays. Volts (rms) at the output: ", listening)
    scale = card_scale(profile, played, volts, heard)
    return scale.output, scale.input


def _sensor(args: argparse.Namespace, profile: RigProfile, scale: float | None) -> dict[str, Any]:
    """Listen to a sensor on a known motion, the shaker off."""
    from drivers.rig.calibration import known_tone, sensitivity

    channel = _channel(profile, args.sensor)
    known = args.known
    if known is None:
        known = _ask(
            f"Put '{channel.name}' on a known motion and switch that on. Its size (rms) in {channel.unit}: "
        )
    silent = replace(profile, instruments={k: v for k, v in profile.instruments.items() if k != "exciter"})
    with _open(silent) as listening:
        signal = listening.hear(args.seconds, driven=False)[_row(profile, channel.name)]
        frequency, heard = known_tone(signal, listening.rig.source.rate, channel.name, args.at)
    return {
        "channel": channel.name,
        "unit": channel.unit,
        "frequency": frequency,
        "sensitivity": sensitivity(profile, channel, heard, known, scale),
        "stderr": heard.stderr / heard.amplitude,
    }


def _row(profile: RigProfile, channel: str) -> int:
    return [c.name for c in profile.channels].index(channel)


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

    def play(self, waveform: Waveform) -> None:
        if self.rig.exciter is not None:
            self.rig.exciter.play(waveform)

    def hear(self, seconds: float, driven: bool) -> np.ndarray[Any, Any]:
        """Samples of all channels without a gap or an overload, from when the drive is steady."""
        import numpy as np

        wanted = round(seconds * self.rig.source.rate)
        kept: list[np.ndarray[Any, Any]] = []
        count = expected = 0
        deadline = time.monotonic() + PATIENCE + seconds
        while count < wanted:
            self.look()
            for block in self._queue.read():
                steady = not driven or (block.drive is not None and block.drive.steady)
                if not steady or (kept and block.start_index != expected):
                    kept, count = [], 0
                if steady:
                    if block.overloads:
                        name = self.rig.source.channels[block.overloads[0].channel].name
                        raise DataError(f"'{name}' is overloaded: turn its gain or the level down.")
                    kept.append(block.data.copy())
                    count, expected = count + block.samples, block.stop_index
            if time.monotonic() > deadline:
                raise DataError("The tone did not become steady: nothing was calibrated.")
            time.sleep(0.02)
        return np.concatenate(kept, axis=1)[:, :wanted]

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
    from concurrent.futures import ThreadPoolExecutor

    print(question, end="", file=sys.stderr, flush=True)
    pool = ThreadPoolExecutor(1)
    answer = pool.submit(sys.stdin.readline)
    pool.shutdown(wait=False)
    while not answer.done():
        if listening is not None:
            listening.look()
        time.sleep(0.05)
    try:
        return float(answer.result().replace(",", "."))
    except ValueError:
        raise DataError("A number was asked for: nothing was calibrated.") from None


def _print(found: dict[str, Any], profile: RigProfile) -> None:
    if "output_full_scale" in found:
        print(f"output: 1.0 of the card is {found['output_full_scale']:.5g} V")
        print(f"input:  1.0 of the card is {found['input_full_scale']:.5g} V")
        if profile.limits.peak > found["output_full_scale"]:
            print(
                f"The limit of {profile.limits.peak:g} V is more than this output gives: lower [limits] "
                "amplitude in the profile."
            )
    if sensor := found.get("sensor"):
        print(f"{sensor['channel']}: {sensor['sensitivity']:.5g} V per {sensor['unit']} "
              f"(± {100 * sensor['stderr']:.1g} %, at {sensor['frequency']:.5g} Hz)")  # fmt: skip
    print(f"{found['out']} is the rig as calibrated.")
