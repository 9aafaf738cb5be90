"""Endurance of the acquisition: a counter recorded for minutes or hours, memory and lag watched.

`python -m benchmarks.soak --minutes 60 [--channels 8] [--rate 51200]`

Reports the slope of the memory in MB an hour (without what waits for the disk, from the second quarter on,
when caches have settled), the largest lag of the recorder, and proves every recorded sample.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil

from app.output import table
from benchmarks.acquisition import check
from drivers.acquisition.capture import recording_to
from drivers.acquisition.engine import Engine
from drivers.virtual.counter import CounterSource


def soak(folder: Path, minutes: float, channels: int, rate: float) -> list[tuple[str, object]]:
    """Run and measure; rows of name and value."""
    process = psutil.Process()
    engine = Engine(CounterSource(channels, rate))
    queue = engine.subscribe(4.0)
    engine.start()
    capture = engine.record(recording_to(folder / "soak", engine.source, {}), round(60 * minutes * rate))
    times, memory, worst = [], [], 0.0
    begin, cpu = time.monotonic(), time.process_time()
    while not capture.wait(1 / 30):
        for block in queue.read():
            block.data.min(axis=1), block.data.max(axis=1)
        worst = max(worst, engine.status.lag)
        if not times or time.monotonic() - begin - times[-1] > 1.0:
            times.append(time.monotonic() - begin)
            queued = engine.status.lag * rate * channels * 8  # waiting for the disk: bounded, no growth
            memory.append((process.memory_info().rss - queued) / 1e6)
    used = (time.process_time() - cpu) / (time.monotonic() - begin)
    engine.stop()
    status = engine.status
    late = np.array(times) > times[-1] / 4
    slope, error = _slope(np.array(times)[late], np.array(memory)[late])
    wrong = check(capture.finished[0].path, channels)
    return [
        ("minutes", minutes),
        ("samples a channel", round(60 * minutes * rate)),
        ("samples wrong", wrong),
        ("gaps", status.gaps),
        ("late blocks", status.late),
        ("blocks dropped by the live view", status.dropped),
        ("largest lag of the recorder, s", round(worst, 3)),
        ("memory, MB at a quarter and at the end", f"{memory[len(memory) // 4]:.1f}, {memory[-1]:.1f}"),
        ("slope of the memory, MB/h", f"{slope:.2f} +- {error:.2f}"),
        ("processor, cores", round(used, 3)),
        ("problem", status.failure or "none"),
    ]


def _slope(t: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Least-squares slope in units an hour, with its standard error."""
    design = np.column_stack([np.ones_like(t), t / 3600])
    fit, residual, *_ = np.linalg.lstsq(design, y, rcond=None)
    variance = float(residual[0]) / max(1, len(t) - 2) if len(residual) else 0.0
    return float(fit[1]), float(np.sqrt(variance * np.linalg.inv(design.T @ design)[1, 1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--channels", type=int, default=8)
    parser.add_argument("--rate", type=float, default=51_200.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = soak(Path(folder), args.minutes, args.channels, args.rate)
    print(table(["quantity", "value"], rows))


if __name__ == "__main__":
    main()
