"""Recordings: how fast they are written and opened beside h5py, npTDMS and netCDF4; what crashes cost.

`python -m benchmarks recordings` measures speed; `python -m benchmarks.recordings [--kills 200] [--cuts 200]
[--large]` adds crashes. Every peer writes the same blocks of 10 ms and makes them safe each second, as ours
does; only ours survives a crash and proves what it wrote.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.base.errors import DataError
from app.output import table
from benchmarks.measure import Measurement
from drivers.formats import open_lazily
from drivers.recording import Recorder, Recording
from drivers.recording.container import write_container
from drivers.recording.journal import ChannelSpec
from drivers.recording.lazy import Description

if TYPE_CHECKING:
    from tests.soak.crashes import Outcome

RATE, CHANNELS, BLOCK = 102_400.0, 8, 1024
PER_SECOND = 100  # blocks


class Synthetic(Recording):
    """A recording of any length that needs no memory."""

    def __init__(self, samples: int, channels: int) -> None:
        specs = tuple(ChannelSpec(f"c{i}", "V") for i in range(channels))
        super().__init__(Description(RATE, specs, samples))

    def raw(self, channel: int, start: int, stop: int) -> np.ndarray:
        return np.sin(np.arange(start, stop) * (1e-3 + 1e-4 * channel))


def measure(quick: bool = False) -> list[Measurement]:
    """Writing ten seconds of 8 x 102.4 kS/s, and a look at the whole of a large file."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = 2.0 if quick else 10.0
        return [*_writing(Path(folder), seconds), *_looking(Path(folder), 2_000_000 if quick else 10_000_000)]


def _writing(folder: Path, seconds: float) -> list[Measurement]:
    blocks = int(seconds * RATE) // BLOCK
    block = np.random.default_rng(1).standard_normal((CHANNELS, BLOCK))
    work = f"{CHANNELS} x {RATE / 1e3:g} kS/s for {seconds:g} s written, synced each second"
    writers: dict[str, Callable[[Path, np.ndarray, int], np.ndarray]] = {
        "h5py": _by_h5py,
        "npTDMS": _by_nptdms,
        "netCDF4": _by_netcdf,
    }
    cpu, slowest = _by_us(folder, block, blocks)
    rows = []
    for name, write in writers.items():
        begin = time.process_time()
        try:
            read = write(folder / f"{name}.file", block, blocks)
        except ModuleNotFoundError:
            rows.append(Measurement(work, name, None, cpu, note="not installed"))
            continue
        taken = time.process_time() - begin
        agrees = bool(np.array_equal(read, block[:, -1]))
        note = f"slowest append of ours {1e3 * slowest:.1f} ms; ours with checksums, in a crash-safe journal"
        rows.append(Measurement(work, name, taken, cpu, agrees, note=note))
    return rows


def _by_us(folder: Path, block: np.ndarray, blocks: int) -> tuple[float, float]:
    """Processor time of appending, and the longest append in seconds."""
    recorder = Recorder(folder / "ours", RATE, [f"c{i}" for i in range(CHANNELS)])
    begin, slowest = time.process_time(), 0.0
    for i in range(blocks):
        before = time.perf_counter()
        recorder.append(block, i * BLOCK)
        slowest = max(slowest, time.perf_counter() - before)
    taken = time.process_time() - begin
    recorder.close()
    return taken, slowest


def _by_h5py(path: Path, block: np.ndarray, blocks: int) -> np.ndarray:
    """The last samples as read back."""
    import h5py

    with h5py.File(path, "w") as file:
        data = file.create_dataset(
            "data", (CHANNELS, 0), "f8", maxshape=(CHANNELS, None), chunks=(CHANNELS, 8192)
        )
        for i in range(blocks):
            data.resize((i + 1) * BLOCK, axis=1)
            data[:, i * BLOCK :] = block
            if i % PER_SECOND == 0:
                file.flush()
                _sync(path)
    with h5py.File(path) as file:
        last: np.ndarray = file["data"][:, -1]
    return last


def _by_nptdms(path: Path, block: np.ndarray, blocks: int) -> np.ndarray:
    from nptdms import ChannelObject, TdmsFile, TdmsWriter

    with path.open("wb") as target, TdmsWriter(target) as writer:
        for i in range(blocks):
            writer.write_segment([ChannelObject("group", f"c{c}", block[c]) for c in range(CHANNELS)])
            if i % PER_SECOND == 0:
                target.flush()
                os.fsync(target.fileno())
    with TdmsFile.open(path) as file:
        return np.array([file["group"][f"c{c}"][-1] for c in range(CHANNELS)])


def _by_netcdf(path: Path, block: np.ndarray, blocks: int) -> np.ndarray:
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("channel", CHANNELS)
        file.createDimension("time", None)
        data = file.createVariable("data", "f8", ("channel", "time"), chunksizes=(CHANNELS, 8192))
        for i in range(blocks):
            data[:, i * BLOCK : (i + 1) * BLOCK] = block
            if i % PER_SECOND == 0:
                file.sync()
                _sync(path)
    with netCDF4.Dataset(path) as file:
        return np.asarray(file["data"][:, -1])


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _looking(folder: Path, samples: int) -> list[Measurement]:
    """Least and largest of 2000 bins of every channel, as a plot wants them."""
    path, bins = folder / "large.h5", 2000
    write_container(Synthetic(samples, CHANNELS), path)

    def ours() -> np.ndarray:
        with open_lazily(path) as recording:
            return np.array([recording.envelope(name, 0, samples, bins)[-2:] for name in recording.names])

    def by_h5py() -> np.ndarray:
        import h5py

        with h5py.File(path) as file:
            datasets = [d for d in _datasets(file) if d.shape and d.shape[-1] == samples]
            whole = np.concatenate([np.atleast_2d(d[...]) for d in datasets]).reshape(CHANNELS, bins, -1)
        return np.stack([whole.min(axis=2), whole.max(axis=2)], axis=1)

    seconds, found = _timed(ours)
    taken, expected = _timed(by_h5py)
    agrees = bool(np.allclose(found.min(), expected.min()) and np.allclose(found.max(), expected.max()))
    work = f"{samples:.0e} samples x {CHANNELS} opened and drawn in {bins} bins"
    return [Measurement(work, "h5py, all read", taken, seconds, agrees, note="ours from its stored overview")]


def _datasets(group: Any) -> list[Any]:
    import h5py

    found: list[Any] = []
    group.visititems(lambda _, item: found.append(item) if isinstance(item, h5py.Dataset) else None)
    return found


def _timed(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


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
    from tests.soak.crashes import cut_power, kill_once, take

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
    outcomes = [r for r in results if r is not None and not isinstance(r, str)]
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
