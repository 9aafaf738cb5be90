"""The process that plays the window for :mod:`tests.soak.stops`: opens a guarded rig, does what it is told.

``python -m tests.soak.stop_window PROFILE.pickle``; commands come by lines, each is answered by ``ok`` or
``no REASON``. Signs of life come from a thread, so that freezing the process takes them away too.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from analysis import tone_response
from analysis.base.errors import ShakedownError
from app.loop_rig import modulated
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import GuardedRig, open_guarded
from drivers.acquisition.sequence import SequenceRun, sequence_from_text
from drivers.base.waveform import Sine
from tests.soak.loops import controller

PATIENCE = 2.0  # s, of the rig's process with this one
SEQUENCE = "amplitude = {a}\nfrequencies = [{f}, {g}]\nsettle = 0.2\nseconds = 0.3\n"


def main(file: Path) -> None:
    # What was written here for us by the soak itself a moment ago.
    profile = pickle.loads(file.read_bytes())
    rig = open_guarded(profile, patience=PATIENCE)
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    threading.Thread(target=_beat, args=(rig,), daemon=True).start()
    _say(f"{rig.link.page.path} {rig.link.pid}")
    for line in sys.stdin:
        try:
            if _obey(rig, engine, line.split()) is False:
                break
            _say("ok")
        except ShakedownError as error:
            _say(f"no {error}")
    engine.stop()
    rig.close()


def _beat(rig: GuardedRig) -> None:
    while True:
        rig.beat()
        time.sleep(0.05)


def _obey(rig: GuardedRig, engine: Engine, words: list[str]) -> bool | None:
    assert rig.exciter is not None
    name, *values = words
    numbers = [float(v) for v in values] if name not in ("record", "loop") else []
    if name == "play":
        rig.exciter.play(Sine(*numbers))
    elif name == "change":
        rig.exciter.change(amplitude=numbers[0])
    elif name == "arm":
        rig.arm()
    elif name == "restart":
        engine.stop()
        engine.start()
    elif name == "loop":  # closed from now on
        modulated(rig).control(controller(values[0], rig.source.rate))
    elif name == "sequence":
        plan = sequence_from_text(SEQUENCE.format(a=numbers[0], f=numbers[1], g=numbers[1] + 1))
        run = SequenceRun(plan, tempfile.mkdtemp(prefix="sequence-"))
        _in_thread(lambda: run.run(rig, engine))
    elif name == "calibrate":  # a tone that is listened to, as by `shakedown calibrate` and the self-test
        rig.exciter.play(Sine(*numbers))
        _in_thread(lambda: _listen(rig, engine, numbers[1]))
    elif name == "instrument":  # a controller that does not answer for a long time
        _in_thread(lambda: rig.controllers["echo"].set("x", str(numbers[0])))
    elif name == "busy":  # commands without a pause
        for amplitude in numbers:
            _in_thread(lambda a=amplitude: _flood(rig, a))  # type: ignore[misc]
    elif name == "record":
        engine.record(recording_to(Path(values[0]), engine.source, {}))
    else:
        return False
    return None


def _listen(rig: GuardedRig, engine: Engine, frequency: float) -> None:
    """Take the newest half second apart again and again, until the drive is latched."""
    queue, kept = engine.subscribe(5.0), np.empty((len(rig.source.channels), 0))
    while not rig.drive_status().latched:
        for block in queue.read():
            kept = np.concatenate([kept, block.data], axis=1)[:, -round(0.5 * rig.source.rate) :]
        if kept.shape[1] * frequency > 5 * rig.source.rate:
            for signal in kept:
                tone_response(signal, kept[-1], rig.source.rate, frequency)
        time.sleep(0.01)


def _flood(rig: GuardedRig, amplitude: float) -> None:
    assert rig.exciter is not None
    for k in range(2000):
        rig.exciter.change(amplitude=amplitude * (1 + 0.1 * (k % 2)))  # until it is latched


def _in_thread(work: object) -> None:
    def guarded() -> None:
        with contextlib.suppress(ShakedownError):  # stopped, as it should be
            work()  # type: ignore[operator]

    threading.Thread(target=guarded, daemon=True).start()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
