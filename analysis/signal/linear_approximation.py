"""Best linear approximation of a specimen under a multisine, with noise and nonlinear distortion apart.

A periodic drive separates the three: what differs from period to period is noise; what repeats at lines that
were not driven is nonlinear distortion, at even lines by even and at odd lines by odd terms of the equation
of motion (Pintelon & Schoukens 2012, chapter 4: the fast method with one realisation of the phases, the
robust method with several).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.base.record import Record
from analysis.base.words import percent
from analysis.signal.frequency_response import ratio_unit

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
DRIVEN = 1e-3  # of the strongest line's power: what is more was driven
PERIODIC = ("multisine", "odd multisine")  # waveforms of a drive made of lines
LEAST = 1e-4  # of the response: less is distorted by the best of measuring chains
FEW = 0.03  # of the lines: so few even ones were not meant
SURE = 1e-4  # chance that noise alone would show as much
SETTLED = 2.0  # times the usual difference between periods: what is more is a transient
HIGHEST = 3  # times the highest driven line: harmonics beyond are not looked at


@dataclass(frozen=True)
class Distortion:
    """Output at lines that were not driven: rms in the output's unit, relative to the driven lines."""

    kind: str  # "odd", "even" or "any"
    lines: int
    rms: float
    share: float
    chance: float  # that noise alone would do it; nan where the noise is not known

    @property
    def clear(self) -> bool:
        return bool(self.chance < SURE and self.share > LEAST)


@dataclass(frozen=True, eq=False)
class LinearApproximation:
    """Response at the driven lines; noise and distortion as standard errors of it and as levels."""

    frequency: Array  # Hz, driven lines
    response: Complex
    noise: Array  # standard error of the response by noise; nan with a single period
    distortion: Array  # standard error by nonlinear distortion; nan with a single realisation
    input: str
    output: str
    unit: str
    lines: Array  # Hz, all lines looked at
    level: Array  # amplitude of the output at them, what the input's own lines explain taken off
    noise_level: Array  # amplitude of the noise at them
    driven: NDArray[np.bool_]  # of ``lines``
    number: NDArray[np.int64]  # of ``lines``: multiples of the period's frequency
    periods: int
    realisations: int
    distortions: tuple[Distortion, ...]
    noise_share: float  # rms of the noise over that of the driven lines
    messages: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """What the picture says, in one sentence."""
        clear = [d for d in self.distortions if d.clear]
        if clear:
            parts = " and ".join(f"{_NAMES[d.kind]} ({percent(d.share)} of the response)" for d in clear)
            return f"The specimen is nonlinear: {parts}."
        if any(np.isfinite(d.chance) for d in self.distortions):
            return f"No nonlinear distortion above the noise ({percent(self.noise_share)} of the response)."
        if np.isfinite(self.distortion).any():
            return "Noise and nonlinear distortion cannot be told apart: record several periods of each."
        return "One realisation on all lines, or a single period: nonlinear distortion cannot be told."


_NAMES = {
    "odd": "odd terms, such as cubic stiffness or friction",
    "even": "even terms, such as an asymmetric stiffness",
    "any": "distortion at lines that were not driven",
}


def linear_approximation(
    records: Sequence[Record], source: str, output: str, period: float | None = None
) -> LinearApproximation:
    """Best linear approximation from one record for each realisation of the multisine's phases.

    ``period`` in seconds; by default that of the recorded drive. Each record holds whole periods of a steady
    motion; a transient at its start is left out.
    """
    if not records:
        raise DataError("A linear approximation needs a recording.")
    size = _period_samples(records[0], period)
    messages: list[str] = []
    spectra = [_spectra(record, source, output, size, messages) for record in records]
    inputs = [u.mean(axis=0) for u, _ in spectra]
    first = records[0]
    driven = _driven_lines(np.mean([np.abs(u) ** 2 for u in inputs], axis=0), first.rate / size, messages)
    return _separated(
        spectra,
        driven,
        first.rate / size,
        (source, output, ratio_unit(first.channels[output].unit, first.channels[source].unit)),
        messages,
    )


def _period_samples(record: Record, period: float | None) -> int:
    drive = record.excitation
    if period is None:
        if drive is None or drive.waveform not in PERIODIC or not drive.frequency > 0:
            raise DataError("The recording does not tell the period of a multisine: give it in seconds.")
        period = 1 / drive.frequency
    samples = period * record.rate
    if not (np.isfinite(samples) and samples >= 16):
        raise DataError(f"A period of {period:g} s is too short at {record.rate:g} samples a second.")
    if abs(samples - round(samples)) > 1e-4:
        raise DataError(
            f"A period of {period:g} s holds {samples:.3f} samples: it must hold a whole number of them. "
            "Choose a line spacing that divides the sample rate."
        )
    return round(samples)


def _spectra(
    record: Record, source: str, output: str, size: int, messages: list[str]
) -> tuple[Complex, Complex]:
    """Spectra [periods, lines] of both channels as amplitudes, without lost samples and transient."""
    for name in (source, output):
        record[name]  # an unknown name is refused here, in words
    valid = record.channels[source].valid() & record.channels[output].valid()
    count = len(record) // size
    whole = valid[: count * size].reshape(count, size).all(axis=1)
    if not whole.any():
        raise DataError(f"No whole period of {size} samples is there without a lost sample.")
    pair = [record[name][: count * size].reshape(count, size)[whole] for name in (source, output)]
    skipped = _transient(pair[1])
    if skipped:
        messages.append(f"Left out as a transient: {skipped} of {len(pair[1])} periods, at the start.")
    u, y = (2 / size * np.fft.rfft(part[skipped:], axis=1) for part in pair)
    return u, y


def _transient(periods: Array) -> int:
    """Periods at the start that differ from the last one by more than the later ones do."""
    if len(periods) < 4:
        return 0
    apart = np.sqrt(np.mean((periods[:-1] - periods[-1]) ** 2, axis=1))
    usual = np.median(apart[len(apart) // 2 :])
    late = np.flatnonzero(apart > SETTLED * usual)
    skipped = int(late[-1]) + 1 if len(late) else 0
    return min(skipped, len(periods) - 2)


def _driven_lines(power: Array, spacing: float, messages: list[str]) -> NDArray[np.int64]:
    """Lines with power in the input; a few even ones among many odd ones are hum, not drive."""
    power = power.copy()
    power[[0, -1]] = 0.0
    lines = np.flatnonzero(power > DRIVEN * power.max())
    if not power.max() > 0 or len(lines) < 2:
        raise DataError("The input has fewer than two lines in this period: it is no multisine.")
    even = lines % 2 == 0
    if 0 < np.count_nonzero(even) <= FEW * len(lines):
        where = "; ".join(f"{line * spacing:.4g}" for line in lines[even])
        messages.append(f"Not counted as driven, beside odd lines only: {where} Hz (hum of the mains?).")
        lines = lines[~even]
    return lines


def _separated(
    spectra: list[tuple[Complex, Complex]],
    driven: NDArray[np.int64],
    spacing: float,
    names: tuple[str, str, str],
    messages: list[str],
) -> LinearApproximation:
    realisations = len(spectra)
    periods = min(len(u) for u, _ in spectra)
    responses = np.stack([y.mean(axis=0)[driven] / u.mean(axis=0)[driven] for u, y in spectra])
    response = responses.mean(axis=0)
    top = min(HIGHEST * driven[-1], spectra[0][0].shape[1] - 2)
    looked = np.arange(1, top + 1)
    # What of each line the input itself brings: the shaker answers the specimen, so undriven lines have some.
    known = np.interp(looked, driven, response.real) + 1j * np.interp(looked, driven, response.imag)
    known[(looked < driven[0]) | (looked > driven[-1])] = 0.0
    rests, noises = [], []
    for u, y in spectra:
        rest = y[:, looked] - np.where(np.isin(looked, driven), 0.0, known * u[:, looked])
        rests.append(np.abs(rest.mean(axis=0)) ** 2)
        noises.append(_variance(rest) / len(rest))
    mean_noise = np.mean(noises, axis=0)  # of a mean over the periods, per realisation
    is_driven = np.isin(looked, driven)
    noise_of_h = np.mean([_response_noise(u, y, driven) for u, y in spectra], axis=0) / realisations
    if realisations > 1:
        total = np.var(responses, axis=0, ddof=1) / realisations
        stochastic = np.sqrt(np.maximum(total - np.nan_to_num(noise_of_h), 0.0))
    else:
        stochastic = np.full(len(driven), np.nan)
    level_square = np.mean(rests, axis=0)
    size = float(np.sqrt(level_square[is_driven].sum() / 2))
    found = _distortions(looked, driven, level_square, mean_noise, size, periods, realisations)
    inside = ~is_driven & (looked % 2 == 1) & (looked > driven[0]) & (looked < driven[-1])
    if any(d.kind == "odd" for d in found) and not inside.any():
        messages.append(
            "Every odd line of the band is driven: odd distortion inside it does not show. An odd multisine "
            "leaves some lines out for it."
        )
    if periods < 2:
        messages.append("A single period was recorded: noise cannot be told from distortion.")
    return LinearApproximation(
        frequency=np.asarray(driven * spacing, dtype=np.float64),
        response=response,
        noise=np.sqrt(noise_of_h),
        distortion=stochastic,
        input=names[0],
        output=names[1],
        unit=names[2],
        lines=np.asarray(looked * spacing, dtype=np.float64),
        level=np.sqrt(level_square),
        noise_level=np.sqrt(mean_noise),
        driven=is_driven,
        number=looked,
        periods=periods,
        realisations=realisations,
        distortions=found,
        noise_share=float(np.sqrt(mean_noise.sum() / 2) / size) if size else np.nan,
        messages=tuple(dict.fromkeys(messages)),
    )


def _variance(values: Complex) -> Array:
    """Variance from period to period; nan with a single one."""
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(np.var(values, axis=0, ddof=1))


def _response_noise(u: Complex, y: Complex, driven: NDArray[np.int64]) -> Array:
    """Variance of the response by noise on both channels (Pintelon & Schoukens 2012, eq. 2-32)."""
    if len(u) < 2:
        return np.full(len(driven), np.nan)
    u, y = u[:, driven], y[:, driven]
    mean = y.mean(axis=0) / u.mean(axis=0)
    rest = y - mean * u  # noise on both, as it enters the quotient
    return np.asarray(np.var(rest, axis=0, ddof=1) / len(u) / np.abs(u.mean(axis=0)) ** 2)


def _distortions(
    looked: NDArray[np.int64],
    driven: NDArray[np.int64],
    level: Array,
    noise: Array,
    size: float,
    periods: int,
    realisations: int,
) -> tuple[Distortion, ...]:
    """Lines that were not driven: odd and even apart if only odd ones were driven, else together.

    Noise alone makes the ratio of the two powers follow F with 2n and 2n(P - 1) degrees of freedom for each
    realisation.
    """
    from scipy.stats import f as fisher

    quiet = ~np.isin(looked, driven)
    odd_only = bool((driven % 2 == 1).all())
    groups = (("odd", looked % 2 == 1), ("even", looked % 2 == 0)) if odd_only else (("any", looked > 0),)
    found = []
    for kind, members in groups:
        chosen = quiet & members
        count = int(np.count_nonzero(chosen))
        if count == 0:
            continue
        power, floor = float(level[chosen].mean()), float(noise[chosen].mean())
        freedom = 2 * count * realisations
        ratio = power / floor if floor else np.inf * power if power else 0.0
        chance = float(fisher.sf(ratio, freedom, freedom * (periods - 1))) if periods > 1 else np.nan
        own = max(power - (floor if np.isfinite(floor) else 0.0), 0.0)  # without what the noise adds
        rms = float(np.sqrt(own * count / 2))
        found.append(Distortion(kind, count, rms, rms / size if size else np.nan, chance))
    return tuple(found)
