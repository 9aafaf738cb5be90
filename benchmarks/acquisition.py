"""Acquisition: the highest rate without a lost sample, beside LDAQ on the same machine in the same run.

`python -m benchmarks acquisition` compares processor time at one rate; `python -m benchmarks.acquisition
[--seconds 10] [--channels 8]` goes up to the highest rate without loss.

A counter on every channel proves each sample. Ours records to disk while a live queue is read 30 times
a second and turned into min/max envelopes. LDAQ runs its own core with its own live view (offscreen) from a
source with a buffer of ten seconds, as a device has; its data stay in memory.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from app.output import table
from benchmarks.measure import Measurement
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.formats import open_lazily
from drivers.virtual.counter import CounterSource, miscounted

RATES = (12_800, 25_600, 51_200, 102_400, 204_800, 409_600, 819_200)


def measure(quick: bool = False) -> list[Measurement]:
    """Processor time of a stream with a live view, to disk (ours) and to memory (LDAQ)."""
    seconds = 2.0 if quick else 10.0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for channels, rate in ((4, 25_600), (8, 102_400)):
            mine = ours(Path(folder), channels, rate, seconds)
            work = f"{channels} x {rate / 1e3:g} kS/s for {seconds:g} s with a live view"
            if importlib.util.find_spec("LDAQ") is None:
                rows.append(Measurement(work, "LDAQ", None, mine.cpu, mine.clean, note="not installed"))
                continue
            other = ldaq(channels, rate, seconds)
            note = f"ours: {mine.text}; LDAQ: {other.text}"
            taken = other.cpu if np.isfinite(other.cpu) else None
            rows.append(Measurement(work, "LDAQ", taken, mine.cpu, mine.clean, note=note))
    return rows


@dataclass(frozen=True)
class Stream:
    """Whether every sample is right, processor time in seconds, and what was seen."""

    clean: bool
    cpu: float
    text: str


def ours(folder: Path, channels: int, rate: float, seconds: float) -> Stream:
    """Record a counter with a live view."""
    engine = Engine(CounterSource(channels, rate))
    queue = engine.subscribe(4.0)
    frames, looking = [0], threading.Event()

    def look() -> None:
        while not looking.wait(1 / 30):
            for block in queue.read():
                block.data.min(axis=1), block.data.max(axis=1)
            frames[0] += 1

    viewer = threading.Thread(target=look)
    path = folder / f"run-{rate:.0f}"
    cpu = time.process_time()
    engine.start()
    viewer.start()
    capture = engine.record(recording_to(path, engine.source, {}), round(seconds * rate))
    worst = 0.0
    while not capture.wait(0.1):
        worst = max(worst, engine.status.lag)
    cpu = time.process_time() - cpu
    looking.set()
    viewer.join()
    engine.stop()
    status = engine.status
    wrong = check(capture.finished[0].path, channels)
    clean = wrong == 0 and not status.failure and status.gaps == 0
    Path(capture.finished[0].path).unlink()
    return Stream(
        clean,
        cpu,
        f"{wrong} wrong, lag to {worst:.2f} s, {frames[0] / seconds:.0f} looks/s, {cpu / seconds:.2f} cores, "
        f"{status.late} late blocks" + (f", {status.failure}" if status.failure else ""),
    )


def check(path: Path, channels: int) -> int:
    """Samples of the finished file that are not what the counter says."""
    wrong = 0
    with open_lazily(path) as recording:
        first = int(recording.values("c0", 0, 1)[0])
        for start in range(0, len(recording), 1 << 18):
            stop = min(start + (1 << 18), len(recording))
            data = np.array([recording.values(f"c{i}", start, stop) for i in range(channels)])
            wrong += miscounted(data, first + start)
    return wrong


def ldaq(channels: int, rate: float, seconds: float) -> Stream:
    """The same with LDAQ, in a process of its own (its window wants the main thread)."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.acquisition",
        "--ldaq",
        str(channels),
        str(rate),
        str(seconds),
    ]
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=60 + 4 * seconds, env=environment, check=False
        )
    except subprocess.TimeoutExpired:
        return Stream(False, np.nan, "did not end")
    lines = run.stdout.strip().splitlines()
    if not lines or not lines[-1].startswith("{"):
        return Stream(False, np.nan, (run.stderr.strip().splitlines() or ["said nothing"])[-1])
    return Stream(**json.loads(lines[-1]))


def run_ldaq(channels: int, rate: float, seconds: float) -> Stream:
    import LDAQ
    from LDAQ.acquisition_base import BaseAcquisition

    class Counter(BaseAcquisition):
        """A device with a buffer of ten seconds: what is not read in time is gone."""

        def __init__(self) -> None:
            super().__init__()
            self.acquisition_name = "counter"
            self.sample_rate = rate
            self._channel_names_init = [f"c{i}" for i in range(channels)]
            self.lost = 0
            self.set_data_source()
            self.set_trigger(1e20, 0)

        def set_data_source(self) -> None:
            self.begin, self.sent = time.monotonic(), 0
            super().set_data_source()

        def terminate_data_source(self) -> None: ...

        def clear_buffer(self) -> None:
            self.begin, self.sent = time.monotonic(), 0

        def get_sample_rate(self) -> float:
            return rate

        def read_data(self) -> np.ndarray:
            time.sleep(0.01)
            due = int((time.monotonic() - self.begin) * rate)
            if due - self.sent > 10 * rate:
                self.lost += due - self.sent
                self.sent = due
            n = np.arange(self.sent, due)
            self.sent = due
            return np.repeat(n[:, None].astype(float), channels, axis=1)

    source = Counter()
    view = LDAQ.Visualization(refresh_rate=33)
    for i in range(channels):
        view.add_lines(
            (i % 4, i // 4), source="counter", channels=[i], function=lambda self, d: d, t_span=2.0
        )
    core = LDAQ.Core(acquisitions=[source], visualization=view)
    begin, cpu = time.monotonic(), time.process_time()
    core.run(measurement_duration=seconds, autoclose=True, autostart=True, verbose=0)
    taken, cpu = time.monotonic() - begin, time.process_time() - cpu
    data = core.get_measurement_dict()["counter"]["data"]
    missing = int((np.diff(data[:, 0]) - 1).sum()) + source.lost + max(0, round(seconds * rate) - len(data))
    return Stream(missing == 0, cpu, f"{missing} missing, {taken:.1f} s taken for {seconds:.0f} s")


def highest(
    name: str, stream: Callable[[float], Stream], channels: int, seconds: float
) -> list[tuple[str, str, str, str]]:
    rows = []
    for rate in RATES:
        found = stream(rate)
        rows.append(
            (name, f"{channels} x {rate / 1e3:g} kS/s", "clean" if found.clean else "LOST", found.text)
        )
        if not found.clean:
            break
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--ldaq", nargs=3, metavar=("CHANNELS", "RATE", "SECONDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ldaq:
        print(json.dumps(asdict(run_ldaq(int(args.ldaq[0]), float(args.ldaq[1]), float(args.ldaq[2])))))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = highest(
            "Shakedown",
            lambda rate: ours(Path(folder), args.channels, rate, args.seconds),
            args.channels,
            args.seconds,
        )
    try:
        import LDAQ  # noqa: F401

        rows += highest("LDAQ", lambda rate: ldaq(4, rate, args.seconds), 4, args.seconds)
    except ImportError:
        rows.append(("LDAQ", "-", "-", "not installed: make bench"))
    print(table(["program", "rate", "result", "seen"], rows))


if __name__ == "__main__":
    main()
