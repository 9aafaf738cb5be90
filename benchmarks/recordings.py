"""Recordings: how fast they are written, what crashes cost, how fast large ones open.

`python -m benchmarks.recordings [--kills 200] [--cuts 200] [--large]`
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from analysis.errors import DataError
from app.output import table
from drivers.formats import open_lazily
from drivers.journal import ChannelSpec
from drivers.recording import Recorder, Recording
from drivers.recording.container import write_container
from drivers.recording.lazy import Description
from tests.soak.crashes import Outcome, cut_power, kill_once, take

RATE, CHANNELS, BLOCK = 102_400.0, 8, 1024


class Synthetic(Recording):
    """A recording of any length that needs no memory."""

    def __init__(self, samples: int, channels: int) -> None:
        specs = tuple(ChannelSpec(f"c{i}", "V") for i in range(channels))
        super().__init__(Description(RATE, specs, samples))

    def raw(self, channel: int, start: int, stop: int) -> np.ndarray:
        return np.sin(np.arange(start, stop) * (1e-3 + 1e-4 * channel))


def throughput(folder: Path, seconds: float = 10.0) -> list[tuple[str, float, str]]:
    """Blocks of 10 ms at 8 x 102.4 kS/s, as fast as the recorder takes them."""
    block = np.random.default_rng(1).standard_normal((CHANNELS, BLOCK))
    recorder = Recorder(folder / "fast", RATE, [f"c{i}" for i in range(CHANNELS)])
    count = int(seconds * RATE) // BLOCK
    cpu, wall = time.process_time(), time.perf_counter()
    slowest = 0.0
    for i in range(count):
        before = time.perf_counter()
        recorder.append(block, i * BLOCK)
        slowest = max(slowest, time.perf_counter() - before)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    size = recorder.bytes_written / 1e6
    before = time.perf_counter()
    finished = recorder.close()
    closing = time.perf_counter() - before
    assert finished.problem is None
    return [
        ("written", size / wall, "MB/s"),
        ("processor time per second of recording", cpu / (count * BLOCK / RATE), "s"),
        ("slowest append", 1e3 * slowest, "ms"),
        ("finishing (convert, overview, prove)", size / closing, "MB/s"),
    ]


def crashes(folder: Path, kills: int, cuts: int) -> list[tuple[str, int, int, float, int]]:
    """Rows: crash, how many, of them unreadable, most lost in seconds, wrong samples."""
    rng = np.random.default_rng(20260501)

    def kill(number: int) -> Outcome | None:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            delay = float(rng.uniform(0.0, 1.6))
            return kill_once(Path(place), delay, RATE, CHANNELS, BLOCK, seconds=1.0)

    killed = [_attempted(kill, i) for i in range(kills)]
    taken = take(folder, RATE, CHANNELS, BLOCK, seconds=10.0)
    cut = [_attempted(lambda _: cut_power(taken, folder, rng), i) for i in range(cuts)]
    return [_row("kill -9", killed), _row("power cut", cut)]


def _attempted(crash: Callable[[int], Outcome | None], number: int) -> Outcome | str | None:
    try:
        return crash(number)
    except DataError as error:
        return str(error)


def _row(name: str, results: list[Outcome | str | None]) -> tuple[str, int, int, float, int]:
    outcomes = [r for r in results if isinstance(r, Outcome)]
    most = max((o.lost / RATE for o in outcomes), default=0.0)
    unreadable = sum(isinstance(r, str) for r in results)
    return name, len(results), unreadable, most, sum(o.wrong for o in outcomes)


def opening(folder: Path, samples: int, channels: int) -> tuple[str, float, float, float, float]:
    """Rows: file, size in GB, seconds to write, to open with an overview of 2000 bins, to zoom in."""
    path = folder / "large.h5"
    before = time.perf_counter()
    write_container(Synthetic(samples, channels), path)
    writing = time.perf_counter() - before
    before = time.perf_counter()
    with open_lazily(path) as recording:
        for name in recording.names:
            recording.envelope(name, 0, samples, 2000)
        overview = time.perf_counter() - before
        before = time.perf_counter()
        recording.envelope("c0", samples // 3, samples // 3 + 700_000, 2000)
        zoom = time.perf_counter() - before
    size = path.stat().st_size / 1e9
    path.unlink()
    return f"{samples:.0e} x {channels}", size, writing, overview, zoom


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--large", action="store_true", help="also 1e8 samples")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(table(("recorder", "value", "unit"), throughput(folder)), "\n")
        sizes = [(10_000_000, 8)] + ([(100_000_000, 1)] if args.large else [])
        rows = [opening(folder, *size) for size in sizes]
        print(table(("file", "GB", "write s", "open and overview s", "zoom s"), rows), "\n")
        columns = ("crash", "times", "unreadable", "most lost s", "wrong samples")
        print(table(columns, crashes(folder, args.kills, args.cuts)))


if __name__ == "__main__":
    main()
