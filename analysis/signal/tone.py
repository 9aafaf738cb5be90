"""Response to a pure tone: level, offset, noise and delay of a signal against the drive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


def tone_basis(t: NDArray[np.floating], frequency: float, harmonics: int) -> NDArray[np.float64]:
    """Columns of a least-squares fit at times t [N]: 1, then cos and sin of each harmonic in turn."""
    t = np.asarray(t, dtype=np.float64)
    columns = [np.ones_like(t)]
    for k in range(1, harmonics + 1):
        columns += [np.cos(2 * np.pi * k * frequency * t), np.sin(2 * np.pi * k * frequency * t)]
    return np.stack(columns, axis=1)


@dataclass(frozen=True)
class ToneResponse:
    """What a sensor shows while a tone plays. Units: the channel's, seconds."""

    amplitude: float  # at the tone's frequency, peak
    offset: float
    noise: float  # rms of what is neither offset, tone nor its harmonics
    distortion: float  # amplitude of the harmonics 2 to 5 together, relative to the tone
    delay: float  # s by which the tone comes later than the reference; between -1/2 and 1/2 period
    stderr: float  # of the amplitude, if the noise is white

    @property
    def clear(self) -> bool:
        """The tone is there beyond doubt."""
        return self.amplitude > 10 * self.stderr


def tone_response(
    signal: NDArray[np.float64], reference: NDArray[np.float64], rate: float, frequency: float
) -> ToneResponse:
    """Least-squares fit of offset, tone and four harmonics to a signal and to the drive it answers.

    ``frequency`` in Hz, ``rate`` in Hz; both arrays start with the same sample and should hold at least
    five periods.
    """
    count = sum(k * frequency < 0.45 * rate for k in range(1, 6))
    basis = tone_basis(np.arange(len(signal)) / rate, frequency, count)
    found, *_ = np.linalg.lstsq(basis, signal, rcond=None)
    drive, *_ = np.linalg.lstsq(basis[:, :3], reference, rcond=None)
    sizes = np.hypot(found[1::2], found[2::2])
    lag = (
        np.angle(complex(found[1], -found[2]) / complex(drive[1], -drive[2]))
        if np.hypot(*drive[1:])
        else np.nan
    )
    rest = signal - basis @ found
    noise = float(np.sqrt(np.mean(rest**2)))
    return ToneResponse(
        amplitude=float(sizes[0]),
        offset=float(found[0]),
        noise=noise,
        distortion=float(np.sqrt(np.sum(sizes[1:] ** 2)) / sizes[0]) if sizes[0] else float("nan"),
        delay=float(-lag / (2 * np.pi * frequency)),
        stderr=noise * float(np.sqrt(2 / len(signal))),
    )


def strongest_line(signal: NDArray[np.float64], rate: float) -> float:
    """Frequency (Hz) of the strongest tone of a signal, which may lie between two lines of its spectrum."""
    from scipy.optimize import minimize_scalar

    centred = np.asarray(signal, dtype=np.float64) - np.mean(signal)
    count = len(centred)
    window = np.hanning(count)
    spectrum = np.abs(np.fft.rfft(centred * window))
    peak = int(np.argmax(spectrum[2:])) + 2
    times = np.arange(count) / rate

    def weakness(frequency: float) -> float:
        return -abs(np.dot(centred * window, np.exp(-2j * np.pi * frequency * times)))

    ends = ((peak - 1) * rate / count, (peak + 1) * rate / count)
    return float(
        minimize_scalar(weakness, bounds=ends, method="bounded", options={"xatol": 1e-7 * ends[1]}).x
    )
