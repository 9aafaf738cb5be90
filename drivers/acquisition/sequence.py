"""Sequences: plans of drives and recordings, run step by step, paused, and resumed after a restart.

    name = "Up and down through the resonance"
    amplitude = 1.5                 # V
    from = 2.0                      # Hz; or frequencies = [2.0, 2.5, ...]
    to = 12.0
    step = 0.5                      # or points = 21; logarithmic = true
    directions = "up and down"      # up, down, or both
    settle = 5.0                    # s after each change, before the recording
    seconds = 10.0                  # of each recording; or periods = 100
    tap = 1.0                       # strength of a tap before each step settles; absent: none

or a list of [[steps]], each with frequency, amplitude, settle, seconds or periods, tap; or a list of
[[sweeps]], each a table as above, one after the other.
"""

from __future__ import annotations

import json
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analysis import SILENT, DataError, Progress, ShakedownError, parse_json, parse_toml
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.rise import advance_until_risen
from drivers.base.files import read_text, replaced
from drivers.base.latch import DriveStopped
from drivers.base.protocols import InstrumentError
from drivers.base.waveform import Sine
from drivers.rig.profile import Rig

STATE_FILE = "sequence.json"
PLAN_LIMIT = 100_000
_KNOWN = {
    "name", "amplitude", "from", "to", "step", "points", "logarithmic", "frequencies", "directions",
    "settle", "seconds", "periods", "tap",
}  # fmt: skip
_DIRECTIONS = ("up", "down", "up and down", "down and up")


class SequenceError(ShakedownError):
    """A sequence that cannot be understood, or that belongs to another folder."""


@dataclass(frozen=True)
class Step:
    """One recording: the drive, the time to settle, the length, and perhaps a tap."""

    frequency: float  # Hz
    amplitude: float  # in the exciter's unit
    settle: float  # s
    seconds: float
    tap: float = 0.0

    @property
    def duration(self) -> float:
        return self.settle + self.seconds


@dataclass(frozen=True)
class Sequence:
    """A plan: its steps in order."""

    name: str
    steps: tuple[Step, ...]

    @property
    def duration(self) -> float:
        """Seconds that the whole plan takes on the rig."""
        return sum(s.duration for s in self.steps)


def load_sequence(path: Path | str) -> Sequence:
    """Read a sequence file; SequenceError names the mistake."""
    path = Path(path)
    return sequence_from_text(read_text(path, "a sequence"), path.name)


def sequence_from_text(text: str, source: str = "sequence") -> Sequence:
    try:
        table = parse_toml(text)
        name = str(table.get("name", source.removesuffix(".toml")))
        if "steps" in table:
            steps = tuple(_step({"name": name, **table, **s}) for s in table["steps"])
        else:
            parts = table.get("sweeps", [table])
            steps = tuple(s for part in parts for s in _sweep({**_plain(table), **part}))
        if not steps:
            raise SequenceError("there is no step in it.")
        return Sequence(name, steps)
    except (tomllib.TOMLDecodeError, SequenceError) as error:
        raise SequenceError(f"{source}: {error}") from None


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in table.items() if k != "sweeps"}


def _sweep(table: Mapping[str, Any]) -> list[Step]:
    for name in table:
        if name not in _KNOWN:
            raise SequenceError(f"there is no '{name}': a sequence takes {', '.join(sorted(_KNOWN))}.")
    directions = table.get("directions", "up")
    if directions not in _DIRECTIONS:
        raise SequenceError(f"directions is one of {', '.join(_DIRECTIONS)}, not '{directions}'.")
    up = _frequencies(table)
    courses = {"up": up, "down": up[::-1]}
    order = [f for word in directions.split(" and ") for f in courses[word]]
    return [_step({**table, "frequency": f}) for f in order]


def _frequencies(table: Mapping[str, Any]) -> list[float]:
    if "frequencies" in table:
        found = [_number({"frequency": f}, "frequency") for f in table["frequencies"]]
        return sorted(found)
    start, stop = _number(table, "from"), _number(table, "to")
    start, stop = min(start, stop), max(start, stop)
    if "points" in table:
        points = int(_number(table, "points"))
    else:
        points = int(np.floor((stop - start) / _number(table, "step") + 1e-9)) + 1
        stop = start + (points - 1) * _number(table, "step")
    if not 1 <= points <= PLAN_LIMIT:
        raise SequenceError(f"{points} steps are not a sensible plan.")
    spread = np.geomspace if table.get("logarithmic", False) else np.linspace
    return [float(f) for f in spread(start, stop, points)]


def _step(table: Mapping[str, Any]) -> Step:
    frequency = _number(table, "frequency")
    if "periods" in table and "seconds" not in table:
        seconds = _number(table, "periods") / frequency
    else:
        seconds = _number(table, "seconds")
    settle = _number({"settle": 1.0, **table}, "settle", zero=True)
    tap = _number({"tap": 0.0, **table}, "tap", zero=True, negative=True)
    return Step(frequency, _number(table, "amplitude"), settle, seconds, tap)


def _number(table: Mapping[str, Any], name: str, zero: bool = False, negative: bool = False) -> float:
    if name not in table:
        raise SequenceError(f"'{name}' is missing.")
    value = table[name]
    good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    if not good or (value < 0 and not negative) or (value == 0 and not zero):
        raise SequenceError(f"{name} must be a {'' if negative else 'positive '}number, not {value!r}.")
    return float(value)


class SequenceRun:
    """Runs a sequence into a folder, one recording a step; what is done there already is not done again."""

    def __init__(
        self, sequence: Sequence, folder: Path | str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.sequence = sequence
        self.folder = Path(folder)
        self._metadata = dict(metadata or {})
        self._plan = [asdict(s) for s in sequence.steps]
        self._go = threading.Event()
        self._go.set()
        self.done = self._read_state()

    @property
    def next_step(self) -> int:
        """Number of the step that comes next, from 0; the number of steps when all is done."""
        return len(self.done)

    @property
    def seconds_left(self) -> float:
        return sum(s.duration for s in self.sequence.steps[self.next_step :])

    def pause(self) -> None:
        """Stop after the step under way, with the drive ramped down, until ``resume``."""
        self._go.clear()

    def resume(self) -> None:
        self._go.set()

    def run(self, rig: Rig, engine: Engine, progress: Progress = SILENT) -> list[Path]:
        """Run what is left of the plan on an engine that has been started; the recordings' paths."""
        if rig.exciter is None:
            raise InstrumentError(f"The rig '{rig.profile.key}' has no exciter to run a sequence with.")
        for step in self.sequence.steps:  # the whole plan is checked before anything moves
            rig.exciter.limits.check_frequency(step.frequency)
            rig.exciter.limits.check_amplitude(step.amplitude)
        self.folder.mkdir(parents=True, exist_ok=True)
        playing = False
        try:
            while self.next_step < len(self.sequence.steps):
                if not self._go.is_set():
                    rig.exciter.stop("paused")
                    playing = False
                    self._wait(rig, progress)
                self._run_step(rig, engine, progress, playing)
                playing = True
        except DriveStopped:
            raise  # it is off already; one that is started from now on is somebody else's
        except BaseException:
            rig.exciter.stop("sequence stopped")
            raise
        rig.exciter.stop("sequence finished")
        return self.done

    def _wait(self, rig: Rig, progress: Progress) -> None:
        while not self._go.wait(0.05):
            rig.beat()
            self._report(progress, 0.0, "paused")

    def _run_step(self, rig: Rig, engine: Engine, progress: Progress, playing: bool) -> None:
        number, step = self.next_step, self.sequence.steps[self.next_step]
        assert rig.exciter is not None
        if playing:
            rig.exciter.change(step.frequency, step.amplitude)
        else:
            rig.exciter.play(Sine(step.amplitude, step.frequency))
        if step.tap and rig.specimen is not None:
            rig.specimen.tap(step.tap)
        label = f"step {number + 1} of {len(self.sequence.steps)}: {step.frequency:.4g} Hz"

        def watch(part: float, begin: float, share: float) -> None:
            rig.beat()
            rig.check_drive()
            self._report(progress, (begin + share * part) * step.duration, label)

        split = step.settle / step.duration
        # a change of frequency or a soft start has to be over before it counts as settling
        advance_until_risen(rig, engine, lambda _: watch(0.0, 0.0, split))
        if step.settle:
            engine.advance(step.settle, lambda part: watch(part, 0.0, split))
        path = self.folder / f"step-{number + 1:04d}"
        length = max(1, round(step.seconds * engine.source.rate))
        metadata = {**self._metadata, "sequence": self.sequence.name, "step": number + 1, **asdict(step)}
        self._clear_remains(path)
        capture = engine.record(recording_to(path, engine.source, metadata), length)
        try:
            engine.advance(step.seconds, lambda part: watch(part, split, 1 - split))
            while not capture.wait(0.05):
                rig.beat()
        except BaseException:
            capture.end()
            raise
        if capture.failed:
            raise InstrumentError(capture.failed)
        if capture.drive_stop is not None:
            raise DriveStopped(f"The drive was stopped: {capture.drive_stop.reason}.")
        self.done.append(Path(capture.finished[0].path))
        self._write_state()

    def _report(self, progress: Progress, into_step: float, message: str) -> None:
        whole = self.sequence.duration
        left = max(0.0, self.seconds_left - into_step)
        progress.report(1 - left / whole, f"{message}, {left:.0f} s left", seconds_left=left)

    def _clear_remains(self, path: Path) -> None:
        """A step that was cut off by a restart is done again; what it left is kept under another name."""
        for left in (path.with_suffix(".h5"), path.with_name(path.name + ".h5.journal")):
            if left.exists():
                number = 1
                while (kept := left.with_name(f"unfinished-{number}-{left.name}")).exists():
                    number += 1
                left.rename(kept)

    # -- what is kept between restarts

    def _read_state(self) -> list[Path]:
        file = self.folder / STATE_FILE
        if not file.exists():
            return []
        try:
            state = parse_json(read_text(file, "the state of a sequence"))
            plan, names = state["plan"], [str(name) for name in state["done"]]
        except (ValueError, KeyError, TypeError, DataError):
            raise SequenceError(f"{file} is damaged: choose another folder, or delete it.") from None
        if plan != self._plan:
            raise SequenceError(
                f"{self.folder} holds the recordings of another plan ('{state.get('name')}'): "
                "choose another folder."
            )
        return [self.folder / n for n in names if (self.folder / n).exists()][: len(self._plan)]

    def _write_state(self) -> None:
        state = {"name": self.sequence.name, "plan": self._plan, "done": [p.name for p in self.done]}
        with replaced(self.folder / STATE_FILE) as partial:
            partial.write_text(json.dumps(state, indent=1), encoding="utf-8")
