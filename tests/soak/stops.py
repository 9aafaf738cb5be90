"""How long STOP takes, for every driver in every state, with real processes on a busy machine.

    python -m tests.soak.stops table --times 50 [--load 2] [--drivers ds345,nidaqmx] [--states playing]
    python -m tests.soak.stops table --times 50 --drivers virtual --states ""      the control loop alone
    python -m tests.soak.stops table --times 20 --drivers "ni loop" --states "source stalled,two calls hang"
    python -m tests.soak.stops rise --times 50         how far, and how long, the drive rises after STOP
    python -m tests.soak.stops guard --times 20        the rig's process frozen and killed
    python -m tests.soak.stops terminals --times 20    terminals closed, suspended, interrupted

The output is watched where it is: in the simulated instrument on its pseudo-terminal, in the device server's
trace, in the page of a virtual rig. Nothing is subtracted. What watches and the simulated instruments run
before everything else where the system allows it: a real instrument does not share the computer's cores.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pickle
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from drivers.base.drive_page import DrivePage
from drivers.base.limits import STOP_RAMP
from drivers.rig.profile import RigProfile, load_rig, rig_from_text
from drivers.virtual.simulated_instruments import SimulatedDS345, SimulatedScpi
from tests.soak.slow_parts import with_slow_parts
from tests.sound_card import PROFILE

ROOT = Path(__file__).parents[2]
DRIVERS = ("virtual", "ds345", "scpi", "nidaqmx")
SOUND = "sound"  # a card wired back to itself; asked for by name
NI_LOOP = "ni loop"  # the control loop of an NI rig; asked for by name
NI_LOOP_RATE = 500.0  # samples a second: each takes a handful of calls over the loopback
STATES = (
    "playing", "ramping", "changing", "sequence", "calibrating", "instrument busy", "source stalled",
    "worker busy", "window frozen", "window dead",
)  # fmt: skip
# Of an NI rig: its reads hang, and so does another call (each time another one of these).
HANGING = ("StopTask", "ClearTask", "CreateTask", "CreateAOVoltageChan", "StartTask", "WriteAnalogF64")
# States that only a virtual rig can be in: what the loop does, and what becomes of its window.
LOOPS = (
    "loop dither", "loop watching", "loop holding", "loop tracking", "loop hanging",
    "loop holding and window frozen", "loop tracking and window frozen", "loop tracking and window dead",
)  # fmt: skip
AMPLITUDE, FREQUENCY = 1.0, 50.0  # V, Hz: a period is short beside the times that are measured
SLOW_FREQUENCY = 0.01  # Hz: a cosine that is its own envelope for the seconds that it is looked at
SAMPLE_SECONDS = 0.001
QUIET_SECONDS = 0.06  # at zero for so long: silent
GUARD_SECONDS = 30.0


@dataclass
class Stop:
    """One STOP: seconds until the output was zero for good."""

    seconds: float


class Output:
    """The output of a rig, sampled at its instrument: times and values."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.values: list[float] = []

    def now(self) -> float:
        raise NotImplementedError

    def watch(self, until: float) -> None:
        """Sample at 1 kHz until it has been zero for a while, or the time is over."""
        quiet_since = None
        while time.monotonic() < until:
            value = self.now()
            moment = time.monotonic()
            self.times.append(moment)
            self.values.append(value)
            quiet_since = (quiet_since or moment) if value == 0 else None
            if quiet_since is not None and moment - quiet_since > QUIET_SECONDS:
                return
            time.sleep(SAMPLE_SECONDS)

    def judge(self, pressed: float) -> Stop:
        times, values = np.array(self.times), np.abs(np.array(self.values))
        after = times >= pressed
        sounding = np.flatnonzero(after & (values > 0))
        silent = times[min(sounding[-1] + 1, len(times) - 1)] if len(sounding) else pressed
        if len(sounding) and sounding[-1] + 1 >= len(times):
            silent = np.inf
        return Stop(float(silent - pressed))


@dataclass
class Bench:
    """A rig of one driver, its window in a process, and its output."""

    driver: str
    folder: Path
    profile: RigProfile = field(init=False)
    instrument: Any = None
    server: subprocess.Popen[str] | None = None
    window: subprocess.Popen[str] | None = None
    page: DrivePage = field(init=False)
    rig_pid: int = 0

    def __post_init__(self) -> None:
        self.flag, self.trace = self.folder / "stall", self.folder / "trace"
        rig = load_rig("two_well_beam_modern")
        rig = replace(
            rig,
            channels=tuple(replace(c, limit=None) for c in rig.channels),
            limits=replace(rig.limits, lowest_frequency=0.0),
        )
        exciter: dict[str, Any] | None = None
        if self.driver == SOUND:
            rig = rig_from_text(PROFILE.replace("amplitude = 1.0", "amplitude = 3.0"), "card")
            exciter = {"driver": "sound", "full_scale": 4.0, "corner": 20.0}
        if self.driver in ("ds345", "scpi"):
            simulated = SimulatedDS345 if self.driver == "ds345" else SimulatedScpi
            self.instrument = simulated()
            exciter = {"driver": self.driver, "port": self.instrument.port}
        self.profile = with_slow_parts(rig, self.flag, exciter)
        if self.on_ni:
            self._serve(rig)
        self.open()

    @property
    def on_ni(self) -> bool:
        return self.driver in ("nidaqmx", NI_LOOP)

    def _serve(self, rig: RigProfile) -> None:
        command = [sys.executable, "-m", "tests.soak.stalling_server", str(self.trace), str(self.flag)]
        self.server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.server.stdout is not None
        address = f"127.0.0.1:{self.server.stdout.readline().split()[-1]}"
        wiring = {c.name: f"Dev1/ai{i}" for i, c in enumerate(rig.channels)}
        loop = self.driver == NI_LOOP
        instruments = {
            "source": {"driver": "nidaqmx", "wiring": wiring, "server": address, "loop": {"channels": loop}},
            "exciter": {"driver": "nidaqmx", "output": "Dev1/ao0", "server": address},
            "echo": self.profile.instruments["echo"],
        }
        self.profile = replace(rig, instruments=instruments, rate=NI_LOOP_RATE if loop else rig.rate)

    def open(self) -> None:
        """Start the window's process; the rig's own starts with it."""
        file = self.folder / "profile.pickle"
        file.write_bytes(pickle.dumps(self.profile))
        command = [sys.executable, "-m", "tests.soak.stop_window", str(file)]
        self.window = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            preexec_fn=run_like_others,
        )  # fmt: skip
        assert self.window.stdout is not None
        path, pid = self.window.stdout.readline().split()
        self.page, self.rig_pid = DrivePage.open(Path(path)), int(pid)
        self.wait_for(lambda: self.page.counts.samples > 0, "the first sample")

    def ask(self, command: str) -> str:
        assert self.window is not None and self.window.stdin is not None and self.window.stdout is not None
        self.window.stdin.write(command + "\n")
        self.window.stdin.flush()
        return self.window.stdout.readline().strip()

    # -- the output

    def output(self) -> Output:
        output = Output()
        if self.instrument is not None:
            output.now = lambda: self.instrument.peak  # type: ignore[method-assign]
        elif self.driver == "virtual":
            output.now = lambda: self.page.output  # type: ignore[method-assign]
        else:
            output.now = self._device_output  # type: ignore[method-assign]
        return output

    def played(self) -> tuple[np.ndarray, np.ndarray]:
        """What the instrument has put out, at times a millisecond apart at most while it changes."""
        if self.instrument is not None:
            times, values = np.array(self.instrument.history).T
        else:
            lines = self.trace.read_text().splitlines()
            times, values = np.array([line.split() for line in lines if " " in line], float).T
        return times, np.abs(values)

    def _device_output(self) -> float:
        """The newest line of the device's trace; it is written every millisecond."""
        with self.trace.open("rb") as file:
            file.seek(max(0, self.trace.stat().st_size - 200))
            lines = file.read().split(b"\n")
        return float(lines[-2].split()[1])

    def envelope(self) -> float:
        """The amplitude at the instrument now."""
        if not self.on_ni and self.driver != SOUND:
            return abs(self.output().now())
        end = time.monotonic() + 1.2 / FREQUENCY
        peak = 0.0
        while time.monotonic() < end:
            peak = max(peak, abs(self._device_output()))
            time.sleep(SAMPLE_SECONDS)
        return peak

    def wait_for(self, condition: Any, what: str) -> None:
        deadline = time.monotonic() + GUARD_SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.driver}: {what} did not happen; {self.page.status}")
            time.sleep(0.005)

    def playing(self) -> None:
        answer = self.ask(f"play {AMPLITUDE} {FREQUENCY}")
        assert answer == "ok", f"{self.driver}: {answer}"
        self.wait_for(lambda: self.page.status.state == "playing", "playing")
        if self.on_ni:
            self.wait_for(lambda: self.envelope() > 0.9 * AMPLITUDE, "the device's output")

    # -- the end

    def dead(self) -> None:
        """Wait until the rig's process has ended, after its window has."""
        assert self.window is not None
        for stream in (self.window.stdin, self.window.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        self.window.wait()
        self.wait_for(lambda: not self.page.rig_lives(), "the end of the rig's process")

    def close(self) -> None:
        if self.window is not None and self.window.poll() is None:
            with contextlib.suppress(OSError, ValueError):
                self.ask("quit")
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.window.wait(GUARD_SECONDS)
            self.window.kill()
            self.dead()
        if self.server is not None:
            self.server.kill()
            self.server.communicate()
        if self.instrument is not None:
            self.instrument.__exit__()


def stop_once(bench: Bench, state: str, rng: random.Random) -> Stop:
    """Bring the rig into a state, STOP it there, watch the output; afterwards it is armed or open again."""
    _enter(bench, state, rng)
    output = bench.output()
    pressed = time.monotonic()
    if state.endswith("window dead"):
        assert bench.window is not None
        bench.window.kill()
    else:
        bench.page.request_stop("STOP")
    output.watch(pressed + 5.0)
    stop = output.judge(pressed)
    _leave(bench, state)
    return stop


def _enter(bench: Bench, state: str, rng: random.Random) -> None:
    if state == "ramping":
        assert bench.ask(f"play {AMPLITUDE} {FREQUENCY}") == "ok"
        time.sleep(rng.uniform(0.05, 0.4))
        return
    if state == "sequence":
        assert bench.ask(f"sequence {AMPLITUDE} {FREQUENCY}") == "ok"
        bench.wait_for(lambda: bench.page.output > 0, "the sequence")
        time.sleep(rng.uniform(0.1, 1.0))
        return
    if state == "calibrating":
        assert bench.ask(f"calibrate {AMPLITUDE} {FREQUENCY}") == "ok"
        bench.wait_for(lambda: bench.page.output > 0, "the tone")
        time.sleep(rng.uniform(0.1, 1.5))
        return
    if state.startswith("loop"):
        _close_loop(bench, state)
        time.sleep(rng.uniform(0.1, 0.5))
        _freeze(bench, state)
        return
    bench.playing()
    if state == "changing":
        assert bench.ask(f"change {2 * AMPLITUDE}") == "ok"
        time.sleep(rng.uniform(0.02, 0.15))
    elif state == "instrument busy":
        bench.ask("instrument 0.6")
    elif state == "worker busy":
        bench.ask(f"busy {AMPLITUDE} {AMPLITUDE}")
        time.sleep(rng.uniform(0.0, 0.1))
    elif state in ("source stalled", "two calls hang"):
        bench.flag.write_text(rng.choice(HANGING) if state == "two calls hang" else "", encoding="ascii")
        time.sleep(rng.uniform(0.05, 0.2))
    _freeze(bench, state)


def _freeze(bench: Bench, state: str) -> None:
    if state.endswith("window frozen"):
        assert bench.window is not None
        bench.window.send_signal(signal.SIGSTOP)  # STOP comes from elsewhere, at once


def _close_loop(bench: Bench, state: str) -> None:
    """Bring the loop into a state; a tracker makes the whole drive, the others correct one."""
    kind = state.removeprefix("loop ").partition(" and ")[0]
    if kind == "tracking":
        assert bench.ask(f"play 0.0 {FREQUENCY}") == "ok"
        bench.wait_for(lambda: bench.page.status.state == "playing", "playing")
    else:
        bench.playing()
    assert (answer := bench.ask(f"loop {kind}")) == "ok", answer
    if kind in ("tracking", "dither"):
        bench.wait_for(lambda: bench.page.status.correction > 0.1, "the loop's drive")
    assert bench.page.output > 0


def _leave(bench: Bench, state: str) -> None:
    bench.flag.unlink(missing_ok=True)
    if state.endswith("window frozen"):
        assert bench.window is not None
        bench.window.send_signal(signal.SIGCONT)
    if state.endswith("window dead"):
        bench.dead()
        bench.open()
        return
    if state in ("source stalled", "two calls hang") and bench.on_ni:
        time.sleep(0.3)
    bench.wait_for(lambda: not bench.page.stop_requested and bench.page.output == 0, "silence")
    time.sleep(0.7 if state == "instrument busy" else 0.1)
    if (answer := bench.ask("arm")) != "ok":
        raise AssertionError(f"{bench.driver}, {state}: {answer}")
    if bench.on_ni:
        assert bench.ask("restart") == "ok"  # a STOP in a rise has brought the output out of step


@dataclass
class Rise:
    """The drive after STOP: its largest value over that at STOP, and for how long it was above that."""

    ratio: float
    seconds: float
    share: float  # the rise over the amplitude that it rises to


def rise_once(bench: Bench, state: str, rng: random.Random) -> Rise:
    """STOP a drive that rises; its cosine is so slow that the output is its envelope."""
    assert bench.ask(f"play {AMPLITUDE} {SLOW_FREQUENCY}") == "ok"
    target = AMPLITUDE
    if state == "changing":
        bench.wait_for(lambda: bench.page.status.state == "playing", "playing")
        target = 2 * AMPLITUDE
        assert bench.ask(f"change {target}") == "ok"
    time.sleep(rng.uniform(0.05, 0.4))
    output, pressed = bench.output(), time.monotonic()
    bench.page.request_stop("STOP")
    output.watch(pressed + 5.0)
    _leave(bench, state)
    times, values = bench.played()
    at_stop = values[times <= pressed][-1]
    later, after = times[times > pressed], values[times > pressed]
    above = later[after > at_stop]
    highest = after.max()
    return Rise(
        highest / at_stop if at_stop else float(highest > 0),
        float(above[-1] - pressed) if len(above) else 0.0,
        float(max(0.0, highest - at_stop) / target),
    )


def rise_table(times: int, load: int, drivers: list[str]) -> None:
    for driver in drivers:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(driver, Path(folder))
            try:
                with busy_loops(load):
                    for state in ("ramping", "changing"):
                        rng = random.Random(f"{driver}{state}")
                        rises = [rise_once(bench, state, rng) for _ in range(times)]
                        _rise_row(driver, state, rises)
            finally:
                bench.close()


def _rise_row(driver: str, state: str, rises: list[Rise]) -> None:
    rose = [r for r in rises if r.seconds]
    sys.stdout.write(
        f"{driver:8} {state:16} {len(rises):4d} times: rose after STOP in {len(rose)}; by at most "
        f"{100 * max(r.share for r in rises):.2f} % of its target, for at most "
        f"{1e3 * max(r.seconds for r in rises):.1f} ms; largest value over that at STOP "
        f"{max(r.ratio for r in rises):.4f}\n"
    )
    sys.stdout.flush()


# -- what the second guard is for


def freeze_once(bench: Bench, wake: bool = True) -> Stop:
    """Freeze the rig's process while it drives; woken up again its drive must stay at zero."""
    bench.playing()
    output, pressed = bench.output(), time.monotonic()
    os.kill(bench.rig_pid, signal.SIGSTOP)
    output.watch(pressed + 5.0)
    stop = output.judge(pressed)
    assert bench.page.guard_acted
    if wake:
        os.kill(bench.rig_pid, signal.SIGCONT)
        bench.wait_for(lambda: not bench.page.stop_requested, "life again")
        again = bench.output()
        again.watch(time.monotonic() + 1.0)
        assert max(map(abs, again.values)) == 0.0, "the drive came back"
        bench.wait_for(lambda: bench.page.status.state == "tripped", "tripped")
    return stop


def kill_once(bench: Bench) -> Stop:
    """Kill the rig's process while it drives; the window is told and ends."""
    bench.playing()
    output, pressed = bench.output(), time.monotonic()
    os.kill(bench.rig_pid, signal.SIGKILL)
    output.watch(pressed + 5.0)
    stop = output.judge(pressed)
    assert bench.window is not None
    bench.window.kill()
    bench.dead()
    bench.wait_for(lambda: not bench.page.path.exists(), "the page's end")
    bench.open()
    return stop


ACTIONS = {
    "closed terminal": "", "Ctrl-Z": "\x1a", "Ctrl-\\": "\x1c", "Ctrl-C": "\x03",
    "SIGTERM": "SIGTERM", "SIGSTOP of the rig": "SIGSTOP",
}  # fmt: skip


@dataclass
class Ended:
    """What became of ``acquire`` on a terminal: seconds to silence, its exit code and its recording."""

    stop: Stop
    wanted: int  # samples that had been read from the beginning of the recording to that moment, at least
    recorded: int
    said: str
    code: int


def terminal_once(action: str, folder: Path, wait: float = 0.3) -> Ended:
    """Run ``acquire`` on a terminal of its own, and do to it what people do to terminals."""
    import pty

    from drivers.base.control_folder import page_paths

    out = folder / "run.h5"
    command = [sys.executable, "-m", "app.cli", "acquire", "two_well_beam_modern", "--seconds", "60",
               "--settle", "0", "--out", str(out)]  # fmt: skip
    known = set(page_paths())
    pid, master = pty.fork()
    if pid == 0:
        run_like_others()
        os.chdir(ROOT)
        os.execv(command[0], command)
    printed: list[bytes] = []
    reader = threading.Thread(target=_drain, args=(master, printed), daemon=True)
    reader.start()
    page = _page_of(known)
    deadline = time.monotonic() + GUARD_SECONDS
    journal = out.with_name("run.h5.journal")
    while not (page.status.state == "playing" and journal.exists()) and time.monotonic() < deadline:
        time.sleep(0.005)
    begun = page.counts.samples
    time.sleep(wait)
    output = Output()
    output.now = lambda: page.output  # type: ignore[method-assign]
    wanted = page.counts.samples - begun
    pressed = time.monotonic()
    if action == "closed terminal":
        os.close(master)
    elif action == "SIGSTOP of the rig":
        os.kill(page.rig_pid, signal.SIGSTOP)
    elif action.startswith("SIG"):
        os.kill(pid, getattr(signal, action))
    else:
        os.write(master, ACTIONS[action].encode())
    output.watch(pressed + 5.0)
    stop = output.judge(pressed)
    if action == "SIGSTOP of the rig":
        os.kill(page.rig_pid, signal.SIGCONT)
    _, status = os.waitpid(pid, 0)
    if action != "closed terminal":
        os.close(master)
    deadline = time.monotonic() + GUARD_SECONDS
    while not out.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    from drivers.formats import read

    said = b"".join(printed).decode(errors="replace")
    return Ended(stop, wanted, len(read(out)), said, os.waitstatus_to_exitcode(status))


def _drain(master: int, printed: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(master, 4096):
            printed.append(data)


def _page_of(known: set[Path]) -> DrivePage:
    from drivers.base.control_folder import page_paths

    deadline = time.monotonic() + GUARD_SECONDS
    while time.monotonic() < deadline:
        for path in set(page_paths()) - known:
            with contextlib.suppress(OSError, ValueError):
                page = DrivePage.open(path)
                if page.served:
                    return page
                page.close()
        time.sleep(0.01)
    raise AssertionError("no drive was opened")


def guard_table(times: int, load: int, drivers: list[str]) -> None:
    """Freezing and killing the rig's process for every driver, and what is done to terminals."""
    for driver in drivers:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(driver, Path(folder))
            try:
                with busy_loops(load):
                    frozen = []
                    for _ in range(times):
                        frozen.append(freeze_once(bench))
                        _open_again(bench)
                    _row(driver, "rig frozen", frozen)
                    _row(driver, "rig killed", [kill_once(bench) for _ in range(times)])
            finally:
                bench.close()


def _open_again(bench: Bench) -> None:
    """Arm, or open the rig anew where its device was reset."""
    if not bench.on_ni and bench.ask("arm") == "ok":
        return
    bench.ask("quit")
    bench.dead()
    bench.open()


def terminal_table(times: int, load: int) -> None:
    with busy_loops(load):
        for action in ACTIONS:
            ended = []
            for _ in range(times):
                with tempfile.TemporaryDirectory() as folder:
                    ended.append(terminal_once(action, Path(folder)))
            _row("acquire", action, [e.stop for e in ended])
            whole = sum(e.recorded >= e.wanted > 0 for e in ended)
            codes = sorted({e.code for e in ended})
            sys.stdout.write(f"         {whole} of {times} recordings whole; exit codes {codes}\n")


def run_first() -> None:
    """This process and its instruments before all others, where the system allows it."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))


def run_like_others() -> None:
    """In a child: the ordinary priority."""
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    command = [sys.executable, "-c", "while True: pass"]
    loops = [subprocess.Popen(command, preexec_fn=run_like_others) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def table(times: int, load: int, drivers: list[str], states: list[str]) -> list[dict[str, Any]]:
    """Every driver in every state, ``times`` times; one row each."""
    rows = []
    for driver in drivers:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(driver, Path(folder))
            try:
                with busy_loops(load):
                    for state in states + list(LOOPS) * (driver in ("virtual", NI_LOOP)):
                        rng = random.Random(f"{driver}{state}")
                        stops = [stop_once(bench, state, rng) for _ in range(times)]
                        rows.append(_row(driver, state, stops))
            finally:
                bench.close()
    return rows


def _row(driver: str, state: str, stops: list[Stop]) -> dict[str, Any]:
    milliseconds = np.sort([1e3 * s.seconds for s in stops])
    row = {
        "driver": driver, "state": state, "times": len(stops),
        "median": float(np.median(milliseconds)), "p99": float(np.quantile(milliseconds, 0.99)),
        "worst": float(milliseconds[-1]),
    }  # fmt: skip
    sys.stdout.write(
        f"{driver:8} {state:31} {row['times']:4d} times: median {row['median']:6.1f} ms, "
        f"99 % {row['p99']:6.1f}, worst {row['worst']:6.1f}\n"
    )
    sys.stdout.flush()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["table", "rise", "guard", "terminals"])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--load", type=int, default=2, help="busy loops beside it")
    parser.add_argument("--drivers", default=",".join(DRIVERS))
    parser.add_argument("--states", default=",".join(STATES))
    args = parser.parse_args()
    drivers = args.drivers.split(",")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SHAKEDOWN_CONTROL_FOLDER"] = folder
        run_first()
        if args.what == "rise":
            rise_table(args.times, args.load, drivers)
        elif args.what == "guard":
            guard_table(args.times, args.load, drivers)
        elif args.what == "terminals":
            terminal_table(args.times, args.load)
        else:
            _summary(table(args.times, args.load, drivers, [s for s in args.states.split(",") if s]))


def _summary(rows: list[dict[str, Any]]) -> None:
    limit = 1e3 * (0.1 + STOP_RAMP)
    missed = [r for r in rows if r["p99"] > limit or r["worst"] > 250]
    sys.stdout.write(f"{len(missed)} of {len(rows)} rows beyond {limit:g} ms (99 %) or 250 ms (worst)\n")


if __name__ == "__main__":
    main()
