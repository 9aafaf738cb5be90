"""The motion of a record in a space, and the periodic orbits in it: for the window, reports and the demo."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, Progress, Record

Samples = NDArray[np.float64]
LONGEST = 100_000  # samples: more tell nothing new about delay and dimension


@dataclass(frozen=True)
class Embedding:
    """How one channel is unfolded: handed on by the Embed page."""

    channel: str
    delay: int  # samples
    dimension: int


def verdict_on(record: Record, samples: Samples, frequency: float, progress: Progress) -> Any:
    """Motion that the samples show, "cannot tell" of too few; ``frequency`` of the drive in Hz, 0: none."""
    from analysis import Motion, drive_frequency, examine

    try:
        period = 1.0 / drive_frequency(samples, frequency / record.rate) if frequency > 0 else None
        return examine(samples, record.dt, period=period, progress=progress)
    except DataError as error:
        return Motion("cannot tell", (str(error).rstrip("."),))


def whole(record: Record, channel: str) -> Samples:
    """The longest stretch of a channel without lost samples, at most LONGEST of it."""
    valid = record.channels[channel].valid()
    edges = np.flatnonzero(np.diff(np.concatenate(([False], valid, [False])).astype(np.int8)))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) == 0:
        raise DataError(f"The channel '{channel}' holds no samples.")
    best = int(np.argmax(stops - starts))
    return record[channel][starts[best] : min(stops[best], starts[best] + LONGEST)]


@dataclass(frozen=True, eq=False)
class Space:
    """The motion as points in a space: measured channels, or one channel and its past."""

    points: Samples  # [n, N]
    labels: tuple[str, ...]
    valid: NDArray[np.bool_] | None = None


def space_of(record: Record, channels: tuple[str, ...], dimension: int, delay: int) -> Space:
    """Points from measured channels; with a single channel from its delays (Yuan 1995, eq. 4.1)."""
    from analysis import delay_coordinates

    valid = np.asarray(np.stack([record.channels[name].valid() for name in channels]).all(axis=0))
    if len(channels) > 1:
        units = [record.channels[n].unit for n in channels]
        labels = tuple(f"{n} [{u or '–'}]" for n, u in zip(channels, units, strict=True))
        return Space(np.stack([record[name] for name in channels]), labels, valid)
    (name,) = channels
    points = delay_coordinates(np.where(valid, record[name], np.nan), dimension, delay)
    unit, dt = record.channels[name].unit or "–", record.dt
    later = [f"{name}(t + {1e3 * k * delay * dt:.4g} ms) [{unit}]" for k in range(1, dimension)]
    finite = np.asarray(np.isfinite(points).all(axis=0))
    return Space(points, (f"{name}(t) [{unit}]", *later), finite)


def find_orbits(
    record: Record,
    channels: tuple[str, ...],
    dimension: int | None,
    delay: int | None,
    frequency: float,
    longest: int,
    epsilon: float | None,
    progress: Progress,
) -> tuple[Space, Any]:
    """Confirmed periodic orbits of a record: at multiples of the drive's period, or of any without one.

    Without ``dimension`` and ``delay`` (samples) a single channel is unfolded as its own data ask for.
    """
    from analysis import autonomous_orbits, channel_space, forced_orbits, state_space
    from app.drive import corrected_period
    from app.motion import WITHOUT_ORBITS, no_orbits

    valid = np.asarray(np.stack([record.channels[name].valid() for name in channels]).all(axis=0))
    if len(channels) > 1:
        search = state_space([record[name] for name in channels], valid, channels)
    else:
        (name,) = channels
        search = channel_space(record[name], valid, name, delay=delay, dimension=dimension)
    space = space_of(record, channels, search.dimension, search.delay)
    period, words = None, list(search.messages)
    if frequency > 0:
        period, said = corrected_period(whole(record, channels[0]), frequency, record.rate)
        words += said
    motion = verdict_on(record, whole(record, channels[0]), frequency, progress.part(0.0, 0.3))
    if motion.kind in WITHOUT_ORBITS:
        return space, no_orbits(motion)
    options: dict[str, Any] = {
        "epsilon": epsilon,
        "scale": search.view.scale,
        "noise": search.view.noise,
        "valid": search.valid,
        "views": search.views,
        "progress": progress.part(0.3, 1.0),
    }
    if period is not None:
        found = forced_orbits(search.view.points, period, multiples=range(1, longest + 1), **options)
    else:
        found = autonomous_orbits(search.view.points, **options)
    return space, replace(found, messages=(*words, *found.messages))
