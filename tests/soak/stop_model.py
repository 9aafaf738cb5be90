"""A model of the drive beside a real rig in its own process: commands, late answers, freezes and kills.

    python -m tests.soak.stop_model --steps 10000 [--seed 3]

After every step the rig must be what the model says: every answer belongs to its call, a latched drive
refuses in words, the output is zero when it has to be; at the end everything that was recorded is there.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.acquisition.guarded import open_guarded
from drivers.acquisition.messages import AskDriveState, UseInstrument
from drivers.base.latch import DriveLatched
from drivers.base.protocols import DriveState, InstrumentError
from drivers.base.waveform import Sine
from drivers.formats import open_lazily
from drivers.rig.profile import load_rig
from tests.soak.slow_parts import with_slow_parts
from tests.waiting import wait_until

amplitudes = st.floats(0.1, 2.0)


class DriveMachine(RuleBasedStateMachine):
    """What the drive ought to be: ``playing``, ``latched``, or neither."""

    steps = 0  # of all machines together

    def __init__(self) -> None:
        super().__init__()
        self.words = 0
        self._open()

    def _open(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self.rig = open_guarded(with_slow_parts(load_rig("two_well_beam"), folder / "stall"), patience=60)
        self.link = self.rig.link
        self.engine = Engine(self.rig.source, self.rig.exciter)
        self.engine.start()
        self.capture = self.engine.record(recording_to(folder / "run", self.rig.source, {}))
        self.playing = self.latched = False
        self.alive = True
        self.first_word = self.words

    def _exciter(self):  # type: ignore[no-untyped-def]
        DriveMachine.steps += 1
        return self.rig.exciter

    @precondition(lambda self: self.alive)
    @rule(amplitude=amplitudes)
    def play(self, amplitude: float) -> None:
        exciter = self._exciter()
        with _refused_if(self.latched):
            exciter.play(Sine(amplitude, 7.5))
            self.playing = True
            assert isinstance(exciter.state(), DriveState)

    @precondition(lambda self: self.alive)
    @rule(amplitude=amplitudes)
    def change(self, amplitude: float) -> None:
        exciter = self._exciter()
        with _refused_if(self.latched):
            exciter.change(amplitude=amplitude)

    @precondition(lambda self: self.alive)
    @rule()
    def end_drive(self) -> None:
        self._exciter().stop("enough")
        self.playing = False
        self._silent()

    @precondition(lambda self: self.alive)
    @rule(wait=st.floats(0.0, 0.1))
    def stop(self, wait: float) -> None:
        self._exciter()
        seen = self.link.page.stops
        self.rig.emergency_stop()
        time.sleep(wait)
        wait_until(lambda: self.link.page.stops > seen, "STOP was not taken")
        self.playing, self.latched = False, True
        self._silent()

    @precondition(lambda self: self.alive)
    @rule()
    def arm(self) -> None:
        self._exciter()
        if not self.playing:
            self._silent()
            self.rig.arm()
            self.latched = False

    @precondition(lambda self: self.alive)
    @rule(delay=st.sampled_from((0.0, 0.01, 0.03)), patience=st.sampled_from((0.0, 0.005, 20.0)))
    def ask(self, delay: float, patience: float) -> None:
        """An answer is the one to this question, or comes too late and is nobody's."""
        self._exciter()
        self.words += 1
        word = f"word {self.words}"
        with contextlib.suppress(InstrumentError):
            assert self.link.call(UseInstrument("echo", "set", (word, str(delay))), patience) == word
        with contextlib.suppress(InstrumentError):
            assert isinstance(self.link.call(AskDriveState(), patience), DriveState)

    @precondition(lambda self: self.alive and self.playing)
    @rule()
    def freeze(self) -> None:
        """Half a second without a sign of life: the second guard takes the output over, for good."""
        self._exciter()
        wait_until(lambda: self.link.output > 0, "no drive")
        os.kill(self.link.pid or 0, signal.SIGSTOP)
        try:
            wait_until(
                lambda: self.link.page.guard_acted and self.link.output == 0.0, "the guard did nothing"
            )
        finally:
            os.kill(self.link.pid or 0, signal.SIGCONT)
        wait_until(lambda: not self.link.page.stop_requested, "it did not wake up")
        self.playing, self.latched = False, True
        self._silent()

    @precondition(lambda self: self.alive and self.words > self.first_word + 12)
    @rule()
    def kill(self) -> None:
        self._exciter()
        os.kill(self.link.pid or 0, signal.SIGKILL)
        wait_until(lambda: self.link.output == 0.0 and not self.link.page.path.exists(), "nobody zeroed it")
        self.alive = False

    @precondition(lambda self: not self.alive)
    @rule()
    def open_again(self) -> None:
        """After a kill the recording is whole all the same, and the rig opens anew, armed."""
        DriveMachine.steps += 1
        self._close()
        self._open()

    def _silent(self) -> None:
        page = self.link.page
        wait_until(lambda: page.output == 0.0 and not page.status.waveform, "the drive goes on")
        if self.latched:
            wait_until(lambda: self.rig.drive_status().latched, "not latched")

    def teardown(self) -> None:
        self._close()

    def _close(self) -> None:
        reached = self.capture.recorded
        self.engine.stop()
        self.rig.close()
        assert self.link.output == 0.0
        assert self.capture.done and not self.link.page.path.exists()
        assert self.capture.finished or not reached
        for finished in self.capture.finished:
            with open_lazily(finished.path) as recording:
                assert len(recording) >= reached
                assert not any(recording.about.gaps.values())
        self._folder.cleanup()


@contextlib.contextmanager
def _refused_if(latched: bool):  # type: ignore[no-untyped-def]
    """DriveLatched if, and only if, the drive is latched."""
    try:
        yield
    except DriveLatched as refusal:
        assert latched, refusal
    else:
        assert not latched


def run(examples: int, steps: int, number: int = 0) -> None:
    """``examples`` rigs with up to ``steps`` steps each; ``number`` fixes which."""
    chosen = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    run_state_machine_as_test(seed(number)(DriveMachine), settings=chosen)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--each", type=int, default=200, help="steps with one rig")
    parser.add_argument("--seed", type=int, default=0, help="other interleavings")
    args = parser.parse_args()
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKEDOWN_CONTROL_FOLDER"] = folder
        run(max(1, args.steps // args.each), args.each, args.seed)
    sys.stdout.write(f"{DriveMachine.steps} steps in {time.monotonic() - begin:.0f} s, as the model says\n")


if __name__ == "__main__":
    main()
