"""What the pages have done in worker processes: plain functions, arrays and texts in, results out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from analysis import ModelError, Progress, Record, ShakedownError
from app.orbit_search import verdict_on, whole

if TYPE_CHECKING:
    from analysis import (
        FrequencyResponse,
        Identification,
        LatentStates,
        LinearApproximation,
        Model,
        Resonance,
        Validation,
    )

Samples = NDArray[np.float64]
PICTURED = 4000  # samples of the picture of a fit
RESTART = 2.0  # periods after which the model is started anew in it: chaos cannot be followed for long


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
    import scipy.linalg  # noqa: F401

    import analysis.model  # noqa: F401


def check_model(text: str, source: str, colour: str, size: float, progress: Progress) -> CheckedModel:
    """Read a model; a mistake is part of the answer, because it is expected while somebody writes."""
    from analysis import Model
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
    from analysis import Model, identify

    progress.report(0.0, "Compiling the equations")
    model = Model.from_toml(text)
    return identify(model, mapped(record, mapping), method, progress, **options)


def profile_parameter(
    result: Identification, record: Record, mapping: Mapping[str, str], name: str, progress: Progress
) -> Identification:
    """The result with the profile likelihood of one parameter."""
    from analysis import profile_of

    progress.report(0.0, "Making the fit again")
    return profile_of(result, mapped(record, mapping), name, progress)


def states_of(
    result: Identification, record: Record, mapping: Mapping[str, str], progress: Progress
) -> LatentStates:
    """The states of a fit along the record that it was made from."""
    from analysis import latent_states

    progress.report(0.0, "Making the fit again")
    return latent_states(result, mapped(record, mapping), progress)


def write_states(
    record: Record, result: Identification, found: LatentStates, path: Path, progress: Progress
) -> None:
    """The recording with the states of a fit."""
    from app.latent import with_states
    from drivers.formats import format_for_writing, write

    progress.report(0.0, f"Writing {path.name}")
    format_for_writing(path)
    write(with_states(record, result, found), path)


def suggest_delay(record: Record, channel: str, method: str, progress: Progress) -> Any:
    """Delay that suits a channel, with its curve and a sentence where the data are weak."""
    from analysis import delay_by_autocorrelation, delay_by_mutual_information

    progress.report(0.1, "Choosing the delay")
    choose = delay_by_mutual_information if method == "information" else delay_by_autocorrelation
    delay = choose(whole(record, channel), record.dt)
    quarter = quarter_period(record)
    if quarter is not None and delay.samples > quarter:
        words = "A quarter of the drive's period was taken: a longer delay folds the motion over itself."
        delay = replace(delay, samples=quarter, time=quarter * record.dt, message=words)
    return delay


def judge_motion(record: Record, channel: str, progress: Progress) -> str:
    """What kind of motion a channel shows, in words: its kind first, then the reasons."""
    progress.report(0.0, "Judging the motion")
    drive = record.excitation
    frequency = drive.frequency if drive is not None and drive.waveform == "sine" else 0.0
    return str(verdict_on(record, whole(record, channel), frequency, progress))


def quarter_period(record: Record) -> int | None:
    """A quarter of the drive's period in samples; None without a drive."""
    drive = record.excitation
    if drive is None or drive.frequency <= 0:
        return None
    return max(1, round(record.rate / drive.frequency / 4))


def count_false_neighbours(record: Record, channel: str, delay: int, progress: Progress) -> Any:
    """Dimension for a delay chosen by hand."""
    from analysis import false_neighbours

    progress.report(0.1, "Choosing the dimension")
    return false_neighbours(whole(record, channel), delay)


@dataclass(frozen=True)
class Tone:
    """The response at a sine's own frequency: the quotient of the lines that hold the sine."""

    frequency: float  # Hz
    response: complex
    coherence: float


@dataclass(frozen=True, eq=False)
class Responded:
    """A frequency response and, of averaged spectra, its resonances."""

    response: FrequencyResponse | LinearApproximation
    modes: tuple[Resonance, ...] = ()
    doubts: tuple[str, ...] = ()
    tone: Tone | None = None  # of a sine's response: all of it that means anything


def respond(
    record: Record,
    source: str,
    output: str,
    method: str,
    estimator: str,
    lines: int | None,
    window: str,
    overlap: float,
    period: float | None,
    progress: Progress,
) -> Responded:
    """How one channel answers another; ``method``: average, multisine, or auto (by the recorded drive)."""
    from analysis import doubts, frequency_response, linear_approximation, resonances

    drive = record.excitation
    if method == "multisine" or (
        method == "auto" and drive is not None and drive.waveform.endswith("multisine")
    ):
        return Responded(linear_approximation([record], source, output, period))
    found = frequency_response(record, source, output, estimator, lines, window, overlap)
    if drive is not None and drive.waveform == "sine" and drive.frequency > 0:
        line = int(np.argmin(np.abs(found.frequency - drive.frequency)))
        tone = Tone(drive.frequency, complex(found.response[line]), float(found.coherence[line]))
        return Responded(found, (), tuple(doubts(found, record)), tone)
    return Responded(found, tuple(resonances(found)), tuple(doubts(found, record)))


@dataclass(frozen=True, eq=False)
class FitPicture:
    """Outputs as measured and as the fitted model has them, started anew from the record now and then."""

    names: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    times: Samples = field(default_factory=lambda: np.empty(0))  # s
    measured: Samples = field(default_factory=lambda: np.empty((0, 0)))  # [outputs, samples]
    model: Samples = field(default_factory=lambda: np.empty((0, 0)))
    fit: tuple[float, ...] = ()  # per cent: 100 (1 - rms of the rest / standard deviation)
    stretch: float = 0.0  # s from start to start
    problem: str = ""  # why there is no picture
    markers: tuple[tuple[float, str], ...] = ()  # s, and the word


def fit_picture(
    text: str, record: Record, mapping: Mapping[str, str], values: Mapping[str, float], progress: Progress
) -> FitPicture:
    """The fitted model on the first stretch of the record; a problem is part of the answer."""
    from analysis import Model, predict_response, prepare_subject

    try:
        subject = prepare_subject(Model.from_toml(text), mapped(record, mapping).cut(0, PICTURED), values)
        if subject.hidden:
            words = f"Nothing shows {', '.join(subject.hidden)}: the model cannot be started from the record."
            return FitPicture(problem=words)
        stretch = min(RESTART * subject.base, 0.2 * subject.record.duration)
        found = predict_response(subject, stretch, progress)
    except ShakedownError as error:
        return FitPicture(problem=str(error))
    measured = [record.channels.get(mapping.get(name) or name) for name in found.names]
    units = [channel.unit if channel is not None else "" for channel in measured]
    fit = tuple(float(f) for f in 100 * (1 - found.error))
    return FitPicture(
        found.names, tuple(units), found.times, found.measured, found.restarted, fit, float(stretch),
        markers=subject.record.marked(found.times),
    )  # fmt: skip


def validate_model(
    text: str,
    record: Record,
    mapping: Mapping[str, str],
    values: Mapping[str, float],
    others: Sequence[Path],
    transfer: Path | None,
    stated: float | None,
    progress: Progress,
) -> Validation:
    """Put a fitted model, given by its text, beside the record: every check that can be made.

    ``others`` are recordings at other settings of the drive, ``transfer`` a measured transfer function,
    ``stated`` the share of the motion that an identification that is close says it misses.
    """
    from analysis import Model, validate
    from app.transfer_table import read_transfer
    from drivers.formats import read

    def recording(path: str | Path) -> Record:
        return mapped(read(path), mapping)

    return validate(
        Model.from_toml(text),
        mapped(record, mapping),
        values,
        progress,
        others=[recording(path) for path in others],
        transfer=None if transfer is None else read_transfer(str(transfer), recording),
        stated=stated,
    )
