"""What the pages have done in worker processes: plain functions, arrays and texts in, results out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis.errors import DataError, ModelError
from analysis.progress import Progress
from analysis.record import Record

if TYPE_CHECKING:
    from analysis.identification import Identification
    from analysis.model import Model
    from analysis.prediction import Prediction

Samples = NDArray[np.float64]
LONGEST = 100_000  # samples: more tell nothing new about delay and dimension


@dataclass(frozen=True)
class CheckedModel:
    """A model text that was understood, with its mathematics as a picture; or the reason why not."""

    text: str
    model: Model | None = None
    picture: bytes = b""  # PNG
    problem: str = ""


def warm_up(progress: Progress) -> None:
    """Import what every analysis needs, so that the first one starts at once."""
    import numba  # noqa: F401
    import scipy.linalg
    import scipy.signal  # noqa: F401

    import analysis.model  # noqa: F401


def check_model(text: str, source: str, colour: str, size: float, progress: Progress) -> CheckedModel:
    """Read a model; a mistake is part of the answer, because it is expected while somebody writes."""
    from analysis.model import Model
    from app.mathematics import picture_of

    try:
        model = Model.from_toml(text, source)
    except ModelError as error:
        return CheckedModel(text, problem=str(error))
    return CheckedModel(text, model, picture_of(model.latex_equations(), colour, size))


def mapped(record: Record, mapping: Mapping[str, str]) -> Record:
    """The record with channels under the names that the model uses."""
    channels = dict(record.channels)
    for name, channel in mapping.items():
        if channel:
            record[channel]  # an unknown channel is refused here, in words
            channels[name] = record.channels[channel]
        else:
            channels.pop(name, None)
    return replace(record, channels=channels)


def identify_record(
    text: str,
    record: Record,
    mapping: Mapping[str, str],
    method: str,
    options: dict[str, Any],
    progress: Progress,
) -> Identification:
    """Fit a model, given by its text, to a record."""
    from analysis.methods import identify
    from analysis.model import Model

    progress.report(0.0, "Compiling the equations")
    model = Model.from_toml(text)
    return identify(model, mapped(record, mapping), method, progress, **options)


@dataclass(frozen=True)
class Embedding:
    """How one channel is unfolded: handed on by the Embed page."""

    channel: str
    delay: int  # samples
    dimension: int


@dataclass(frozen=True, eq=False)
class Suggestion:
    """A suggested embedding with the curves behind it."""

    delay: Any  # analysis.delay.Delay
    dimension: Any  # analysis.dimension.FalseNeighbours


def suggest_embedding(record: Record, channel: str, method: str, progress: Progress) -> Suggestion:
    """Delay and dimension that suit a channel, each with its curve and a sentence where the data are weak."""
    from analysis.delay import delay_by_autocorrelation, delay_by_mutual_information
    from analysis.dimension import false_neighbours

    progress.report(0.1, "Choosing the delay")
    samples = whole(record, channel)
    choose = delay_by_mutual_information if method == "information" else delay_by_autocorrelation
    delay = choose(samples, record.dt)
    progress.report(0.4, "Choosing the dimension")
    return Suggestion(delay, false_neighbours(samples, delay.samples))


def count_false_neighbours(record: Record, channel: str, delay: int, progress: Progress) -> Any:
    """Dimension for a delay chosen by hand."""
    from analysis.dimension import false_neighbours

    progress.report(0.1, "Choosing the dimension")
    return false_neighbours(whole(record, channel), delay)


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
    from analysis.embedding import delay_coordinates

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
    dimension: int,
    delay: int,
    frequency: float,
    longest: int,
    epsilon: float | None,
    progress: Progress,
) -> tuple[Space, Any]:
    """Periodic orbits of a record: at multiples of the drive's period, or of any period without one."""
    from analysis.autonomous import autonomous_orbits
    from analysis.orbits import forced_orbits

    space = space_of(record, channels, dimension, delay)
    if frequency > 0:
        found = forced_orbits(
            space.points,
            record.rate / frequency,
            multiples=range(1, longest + 1),
            epsilon=epsilon,
            valid=space.valid,
            progress=progress,
        )
    else:
        found = autonomous_orbits(space.points, epsilon=epsilon, valid=space.valid, progress=progress)
    return space, found


@dataclass(frozen=True, eq=False)
class Comparison:
    """Model beside measurement."""

    prediction: Prediction
    measured_section: Samples  # [q, M] strobed once a period of the drive
    model_section: Samples
    exponents: Samples  # of the model, per second; empty if they could not be had
    exponent_errors: Samples
    measured_exponent: tuple[float, float]  # largest one from the record, per second, and its error; or nan
    verdict: str


def compare(
    text: str,
    record: Record,
    mapping: Mapping[str, str],
    values: Mapping[str, float],
    stretch: float,
    progress: Progress,
) -> Comparison:
    """Put a fitted model beside the record: response, section, exponents, and a verdict in words."""
    from analysis.model import Model
    from analysis.prediction import predict
    from analysis.strobe import sample_at, strobe_positions

    model = Model.from_toml(text)
    named = mapped(record, mapping)
    found = predict(model, named, values, stretch, progress)
    drive = record.excitation
    measured = model_own = np.empty((len(found.names), 0))
    if drive is not None and drive.phase is not None and drive.frequency > 0:
        at = strobe_positions(drive.phase, drive.frequency, record.rate, len(record))
        at = at[(at >= 1) & (at < len(record) - 2)]
        measured, model_own = (_finite(sample_at(rows, at)) for rows in (found.measured, found.free))
    progress.report(0.85, "Exponents of the model")
    exponents, errors = _exponents(model, named, values)
    seen = _measured_exponent(found, record.dt)
    return Comparison(found, measured, model_own, exponents, errors, seen, _verdict(found, exponents))


def _measured_exponent(found: Prediction, dt: float) -> tuple[float, float]:
    """Largest Lyapunov exponent of the measured motion, without any model."""
    from analysis.errors import ShakedownError
    from analysis.exponents import largest_exponent

    points = found.measured / found.spread[:, None]
    if len(points) < 2 or not np.isfinite(points).all():
        return np.nan, np.nan
    try:
        answer = largest_exponent(np.ascontiguousarray(points[:, :40_000]), dt)
    except ShakedownError:
        return np.nan, np.nan
    return float(answer.value), float(answer.stderr)


def _finite(points: Samples) -> Samples:
    return points[:, np.isfinite(points).all(axis=0)]


def _exponents(model: Model, record: Record, values: Mapping[str, float]) -> tuple[Samples, Samples]:
    """Lyapunov exponents of the model under the measured drive; none if it diverges."""
    from analysis.errors import ShakedownError
    from analysis.lyapunov import lyapunov_spectrum
    from analysis.measurement import measurements, start_states

    try:
        (data,) = measurements(model, [record])
        known = model.values({n: v for n, v in values.items() if n in model.parameters})
        start = start_states(model, data, known)[:, 0]
        inputs = data.inputs if data.inputs.count else None
        spectrum = lyapunov_spectrum(
            model, 0.9 * record.duration, initial=start, values=known, inputs=inputs, rtol=1e-6, atol=1e-8
        )
    except ShakedownError:
        return np.empty(0), np.empty(0)
    return np.asarray(spectrum.exponents), np.asarray(spectrum.stderr)


def _verdict(found: Prediction, exponents: Samples) -> str:
    """What the numbers mean, in a sentence or two."""
    worst = 100 * float(np.nanmax(found.error))
    if not worst < 300:
        return "The model does not describe this motion: it runs away from the measurement."
    start = 100 * float(np.nanmax(found.growth[:, 0]))
    if np.isinf(found.horizon):
        words = f"The model follows the motion to {worst:.2g} % over every stretch."
    else:
        words = f"The model follows the motion for {found.horizon:.3g} s before the two part."
    if len(exponents) and exponents[0] > 0:
        words += f" It is chaotic: small differences double every {np.log(2) / exponents[0]:.2g} s."
    elif len(exponents):
        words += " It is not chaotic."
    if start > 20:
        words += f" Already at the restarts it is {start:.0f} % off: check the channels."
    return words
