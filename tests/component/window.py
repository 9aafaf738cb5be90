"""A stand-in for the window: opens a guarded rig, drives it, then blocks, dies or fails as it is told.

Run as a process of its own by test_safety.py: ``python window.py LOG BEHAVIOUR``.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import open_guarded
from drivers.rig.profile import load_rig

GUARD = 60.0  # s: it is killed long before


def main(log: Path, behaviour: str) -> None:
    patience = 0.3 if behaviour == "block" else 60.0
    rig = open_guarded(load_rig("two_well_beam"), patience=patience, log=log)
    engine = Engine(rig.source, rig.exciter)
    engine.start()
    rig.play()
    deadline = time.monotonic() + GUARD
    while rig.link.output < 1.45 and time.monotonic() < deadline:
        if behaviour != "block":  # the first beat starts the watch over them: a busy machine delays beats too
            rig.beat()
        time.sleep(0.02)
    rig.beat()
    sys.stdout.write(f"{rig.link.pid} {rig.link.output:.3f}\n")
    sys.stdout.flush()
    if behaviour == "block":  # the event loop hangs: no more beats
        _spin(GUARD)
    elif behaviour == "block, stop pressed":  # the loop hangs, the key is seen by another thread
        threading.Timer(0.3, lambda: (rig.emergency_stop(), _say("stop"))).start()
        _spin(GUARD)
    elif behaviour == "raise":
        _say("raise")
        raise RuntimeError("a bug in the window")
    elif behaviour == "exit":
        _say("exit")
        os._exit(3)
    elif behaviour == "terminate":  # the system ends the rig's process
        _say("terminate")
        os.kill(rig.link.pid or 0, signal.SIGTERM)
        time.sleep(GUARD)
    else:  # wait to be killed, or for STOP from elsewhere
        while time.monotonic() < deadline + GUARD:
            rig.beat()
            time.sleep(0.05)


def _say(what: str) -> None:
    sys.stdout.write(f"{what} {time.monotonic():.4f}\n")
    sys.stdout.flush()


def _spin(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass  # pure Python: holds the interpreter most of the time


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
