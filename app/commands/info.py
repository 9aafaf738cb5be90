"""shakedown info: what a recording holds, and whether it is intact."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from analysis import Span
from app import project_names as names
from app.output import add_json_option, table, terminal_progress, write_json
from app.reading import add_reading_options, reading_options
from drivers.formats import format_of, open_lazily
from drivers.recording import Recording
from drivers.recording.guesses import Guesses


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=names.recording, help="a recording in any format")
    add_reading_options(parser)
    add_json_option(parser)


def run(args: argparse.Namespace) -> None:
    from pathlib import Path

    path = Path(args.file)
    with open_lazily(path, options=reading_options(args)) as recording:
        payload = _describe(recording, str(path), recording.title or format_of(path).title)
    if not write_json(args.json, payload):
        _print(payload)


@dataclass(frozen=True)
class Statistics:
    """Of the samples that are numbers, in the channel's unit."""

    samples: int
    mean: float | None
    rms: float | None
    min: float | None
    max: float | None


def statistics(recording: Recording, channel: str) -> Statistics:
    """Read the channel once, a block at a time."""
    count, low, high = 0, math.inf, -math.inf
    sums: list[float] = []
    squares: list[float] = []
    for block in recording.blocks(channel, 0, len(recording)):
        good = block[np.isfinite(block)]
        if len(good) == 0:
            continue
        count += len(good)
        with np.errstate(over="ignore"):
            sums.append(float(good.sum()))
            squares.append(float(np.dot(good, good)))
        low, high = min(low, float(good.min())), max(high, float(good.max()))
    if count == 0:
        return Statistics(0, None, None, None, None)
    mean, square = _mean(sums, count), _mean(squares, count)
    return Statistics(count, mean, None if square is None else math.sqrt(square), low, high)


def _mean(sums: list[float], count: int) -> float | None:
    """None where the sum is too large for a number."""
    total = math.fsum(sums) if all(map(math.isfinite, sums)) else math.inf
    return total / count if math.isfinite(total) else None


def _describe(recording: Recording, file: str, title: str) -> dict[str, Any]:
    about = recording.about
    progress = terminal_progress()
    channels = []
    for i, spec in enumerate(about.channels):
        progress.report(i / (len(about.channels) + 1), f"reading {spec.name}")
        channels.append(
            {
                "name": spec.name,
                "unit": spec.unit,
                "stored": spec.numpy_type.name,
                **asdict(statistics(recording, spec.name)),
                "gaps": _spans(about.gaps.get(spec.name, ())),
                "overloads": _spans(about.clipped.get(spec.name, ())),
            }
        )
    progress.report(len(about.channels) / (len(about.channels) + 1), "checking")
    verdict = recording.verify()
    progress.report(1, "done")
    return {
        "file": file,
        "format": title,
        "rate": about.rate,
        "samples": about.samples,
        "duration": recording.duration,
        "start": about.start,
        "clock_time": about.clock_time,
        "excitation": None if about.excitation is None else asdict(about.excitation),
        "channels": channels,
        "events": [_finite(dict(e)) for e in about.events],
        "metadata": _finite(dict(about.metadata)),
        "guesses": None if recording.guesses is None else asdict(recording.guesses),
        "checksum": {"ok": verdict.ok, "text": verdict.text},
    }


def _spans(spans: Sequence[Span]) -> list[list[int]]:
    return [list(span) for span in spans]


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON has no form for."""
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _print(payload: dict[str, Any]) -> None:
    print(f"{payload['file']}: {payload['format']}")
    print(
        f"{payload['samples']} samples at {payload['rate']:.10g} Hz: {payload['duration']:.6g} s"
        + (f", started {payload['start']}" if payload["start"] else "")
    )
    if payload["clock_time"] is not None:
        print(f"the file's clock at the first sample: {payload['clock_time']:.10g} s")
    if payload["guesses"] is not None:
        print("read with " + "; ".join(Guesses(**payload["guesses"]).words()))
    drive = payload["excitation"]
    if drive is not None:
        print("drive: " + ", ".join(f"{k} {v}" for k, v in drive.items() if v is not None))
    columns = ("channel", "unit", "stored", "mean", "rms", "min", "max", "lost", "clipped")
    rows = []
    for c in payload["channels"]:
        numbers = [float("nan") if c[k] is None else c[k] for k in ("mean", "rms", "min", "max")]
        rows.append((c["name"], c["unit"], c["stored"], *numbers, _total(c["gaps"]), _total(c["overloads"])))
    print()
    print(table(columns, rows))
    print()
    for event in payload["events"]:
        print(f"{event.get('kind')} at {_moment(event, payload['rate'])}: {event.get('text', '')}")
    for key, value in payload["metadata"].items():
        text = str(value)
        print(f"{key}: {text if len(text) <= 200 else text[:197] + '...'}")
    print(f"checksum: {payload['checksum']['text']}")


def _moment(event: dict[str, Any], rate: float) -> str:
    index = event.get("index")
    return f"{index / rate:.4g} s (sample {index})" if isinstance(index, int) else f"sample {index}"


def _total(spans: list[list[int]]) -> int:
    return sum(stop - start for start, stop in spans)
