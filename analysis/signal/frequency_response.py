"""Frequency response of an output to an input from averaged spectra: H1, H2 or Hv, with its coherence.

Spectra are averaged over windowed, overlapping segments (Welch 1967). The averager takes a record at once or
the blocks of a stream as they come: both give the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Estimator = Literal["h1", "h2", "hv"]

ESTIMATORS: dict[str, str] = {
    "h1": "noise on the output",
    "h2": "noise on the input",
    "hv": "noise on both, in equal shares",
}
WINDOWS: dict[str, tuple[float, ...]] = {  # coefficients of 1, cos x, cos 2x, ..., x from -pi to pi
    "hann": (0.5, 0.5),
    "flat top": (0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368),
    "blackman-harris": (0.35875, 0.48829, 0.14128, 0.01168),
    "rectangular": (1.0,),
}
DYNAMIC = 1e-6  # of the input's largest power: the lowest and the highest frequency that count as excited
COHERENT = 0.8  # from which a line is to be trusted
MOST_LINES = 1 << 20


@dataclass(frozen=True, eq=False)
class FrequencyResponse:
    """Output over input by frequency in Hz, from the lowest to the highest excited line, evenly spaced."""

    frequency: Array
    response: Complex
    coherence: Array
    input: str = ""
    output: str = ""
    unit: str = ""  # of output over input
    estimator: str = "h1"
    window: str = "hann"
    segments: int = 0
    averages: float = 0.0  # independent ones: overlapping segments share samples

    @property
    def resolution(self) -> float:
        """Distance of two lines in Hz."""
        return float(self.frequency[1] - self.frequency[0]) if len(self.frequency) > 1 else np.nan

    @property
    def stderr(self) -> Array:
        """Standard error of the size |H| (Bendat & Piersol 2010, table 9.6)."""
        square = np.clip(self.coherence, 1e-12, 1.0)
        share = np.sqrt((1 - square) / (2 * square * max(self.averages, 1.0)))
        return np.asarray(np.abs(self.response) * share)


class ResponseAverager:
    """Power of every channel and its cross spectrum with one of them, averaged segment by segment.

    ``lines`` frequency lines up to half the rate; a segment has twice as many samples. ``memory``: weight of
    the newest segment in an exponential average; None: all segments count the same.
    """

    def __init__(
        self,
        channels: int,
        rate: float,
        lines: int,
        window: str = "hann",
        overlap: float = 0.5,
        reference: int = 0,
        memory: float | None = None,
    ) -> None:
        if window not in WINDOWS:
            raise DataError(f"No window '{window}': there are {', '.join(WINDOWS)}.")
        if not 0 <= overlap <= 0.9:
            raise DataError(f"Segments overlap by 0 to 90 per cent, not by {100 * overlap:g}.")
        if not 8 <= lines <= MOST_LINES:
            raise DataError(f"A response has 8 to {MOST_LINES} frequency lines, not {lines}.")
        if memory is not None and not 0 < memory < 1:
            raise DataError(f"The newest segment's weight lies between 0 and 1, not at {memory:g}.")
        self.rate, self.size, self.window, self.memory = rate, 2 * lines, window, memory
        self.hop = max(1, round(self.size * (1 - overlap)))
        self.reference = reference
        self._taper = _taper(window, self.size)
        self._rest = np.empty((channels, 0))
        self._power = np.zeros((channels, lines + 1))
        self._cross = np.zeros((channels, lines + 1), dtype=complex)
        self._weight = self._squares = 0.0
        self.segments = 0

    def add(self, data: Array) -> None:
        """Take the next samples ``[channels, N]``; a segment with a lost sample is left out."""
        held = np.concatenate([self._rest, data], axis=1) if self._rest.shape[1] else data
        at = 0
        while at + self.size <= held.shape[1]:
            self._take(held[:, at : at + self.size])
            at += self.hop
        self._rest = held[:, at:].copy()

    def interrupt(self) -> None:
        """The samples that come next do not follow those before."""
        self._rest = self._rest[:, :0]

    def _take(self, segment: Array) -> None:
        from scipy.fft import rfft

        if not np.isfinite(segment).all():
            return
        spectra = rfft((segment - segment.mean(axis=1, keepdims=True)) * self._taper, axis=1)
        power = spectra.real**2 + spectra.imag**2
        cross = spectra * spectra[self.reference].conj()
        if self.memory is None or self._weight == 0.0:
            self._power += power
            self._cross += cross
            self._weight, self._squares = self._weight + 1.0, self._squares + 1.0
        else:
            kept = 1 - self.memory
            self._power = kept * self._power + self.memory * power
            self._cross = kept * self._cross + self.memory * cross
            self._weight = kept * self._weight + self.memory
            self._squares = kept**2 * self._squares + self.memory**2
        self.segments += 1

    @property
    def averages(self) -> float:
        """Independent averages: overlapping windows are correlated (Welch 1967, section 3)."""
        if self.segments == 0:
            return 0.0
        taper, count = self._taper, self._weight**2 / self._squares
        shared = 0.0
        for step in range(1, int(np.ceil(self.size / self.hop))):
            lag = step * self.hop
            likeness = float(taper[lag:] @ taper[:-lag] / (taper @ taper)) ** 2
            shared += 2 * likeness * max(1 - step / count, 0.0)
        return count / (1 + shared)

    def response(
        self, output: int, estimator: str = "h1", names: tuple[str, str] = ("", ""), unit: str = ""
    ) -> FrequencyResponse:
        """Response of one channel to the reference, as averaged so far."""
        if estimator not in ESTIMATORS:
            raise DataError(f"No estimator '{estimator}': there are {', '.join(ESTIMATORS)}.")
        if self.segments == 0:
            raise DataError(
                f"A response needs at least one stretch of {self.size} samples without a lost one: "
                "take fewer lines or record longer."
            )
        uu, yy, cross = self._power[self.reference], self._power[output], self._cross[output]
        excited = np.flatnonzero(uu[1:] > DYNAMIC * uu[1:].max()) + 1
        if not np.isfinite(uu).all() or len(excited) == 0:
            raise DataError("The input does not move: there is nothing to respond to.")
        band = slice(excited[0], excited[-1] + 1)
        uu, yy, cross = uu[band], yy[band], cross[band]
        with np.errstate(divide="ignore", invalid="ignore"):
            coherence = np.nan_to_num(np.abs(cross) ** 2 / (uu * yy))
            found = {"h1": _h1, "h2": _h2, "hv": _hv}[estimator](uu, yy, cross)
        return FrequencyResponse(
            np.arange(excited[0], excited[-1] + 1) * (self.rate / self.size),
            found,
            np.minimum(coherence, 1.0),
            *names,
            unit,
            estimator,
            self.window,
            self.segments,
            self.averages,
        )


def _taper(window: str, size: int) -> Array:
    """A window of cosines whose next sample would be its first again."""
    x = np.linspace(-np.pi, np.pi, size + 1)[:-1]
    return np.sum([a * np.cos(k * x) for k, a in enumerate(WINDOWS[window])], axis=0, dtype=np.float64)


def _h1(uu: Array, yy: Array, cross: Complex) -> Complex:
    return np.asarray(cross / uu)


def _h2(uu: Array, yy: Array, cross: Complex) -> Complex:
    return np.asarray(yy / cross.conj())


def _hv(uu: Array, yy: Array, cross: Complex) -> Complex:
    """Total least squares with both signals scaled to the same size (Rocklin, Crowley & Vold 1985)."""
    return np.asarray(np.sqrt(yy / uu) * cross / np.abs(cross))


def frequency_response(
    record: Record,
    source: str,
    output: str,
    estimator: str = "h1",
    lines: int | None = None,
    window: str = "hann",
    overlap: float = 0.5,
) -> FrequencyResponse:
    """Response of one channel of a record to another.

    ``lines``: by default so many that a dozen segments fit. Lost and clipped samples are left out with
    the segment that they lie in.
    """
    pair = [record.channels[name] for name in (source, output) if record[name] is not None]
    data = np.stack([np.where(channel.valid(), channel.data, np.nan) for channel in pair])
    if source == output:
        raise DataError("A response needs two channels: an input and another one as output.")
    averager = ResponseAverager(2, record.rate, lines or default_lines(len(record)), window, overlap)
    averager.add(data)
    unit = ratio_unit(record.channels[output].unit, record.channels[source].unit)
    return averager.response(1, estimator, (source, output), unit)


def doubts(found: FrequencyResponse, record: Record) -> list[str]:
    """What keeps a response from being taken at its word, in sentences."""
    words = []
    drive = record.excitation
    if drive is not None and drive.waveform == "sine":
        words.append(
            f"The drive was a sine of {drive.frequency:.4g} Hz: only at that frequency does "
            "the response mean anything."
        )
    elif np.median(found.coherence) < COHERENT:
        words.append(
            f"Coherence below {COHERENT:g} at more than half of the lines: noise, too weak a drive, or a "
            "nonlinear specimen."
        )
    if drive is not None and drive.until is not None:
        words.append(
            f"The drive was switched off after {drive.until:.3g} s of {record.duration:.3g} s: "
            "cut the rest off."
        )
    return words


def default_lines(samples: int) -> int:
    """Frequency lines with which a dozen half-overlapping segments fit into so many samples."""
    return int(np.clip(samples // 13, 16, 8192))


def ratio_unit(above: str, below: str) -> str:
    """Unit of a quotient: ``m/N``, ``1/s`` or nothing."""
    if above == below:
        return ""
    below = f"({below})" if set(below) & set("/ ·*") else below
    return f"{above or '1'}/{below}" if below else above


assert get_args(Estimator) == tuple(ESTIMATORS)
