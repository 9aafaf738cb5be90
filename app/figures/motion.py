"""A recorded motion at a glance: signal, spectrum and section at the phase of the drive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from app.figures.style import MEASURED, SOFT, label

if TYPE_CHECKING:
    from analysis import Record

SHOWN = 25.0  # periods of the drive in the close view


def draw_record(figure: Any, record: Record, channel: str) -> None:
    """The whole record as an envelope, a close view, and what is left once a period of the drive."""
    drive = record.excitation
    driven = drive is not None and drive.frequency > 0
    top, bottom = figure.subplots(2, 1, height_ratios=[1, 1.5])
    _envelope(top, record, channel)
    bottom.remove()
    cells = bottom.get_subplotspec().subgridspec(
        1, 3 if driven else 2, width_ratios=[1.5, 1.2, 1][: 3 if driven else 2]
    )
    axes = [figure.add_subplot(cells[i]) for i in range(3 if driven else 2)]
    _close(axes[0], record, channel)
    _spectrum(axes[1], record, channel)
    if driven:
        _section(axes[2], record, channel)


def _envelope(axis: Any, record: Record, channel: str) -> None:
    data = record[channel]
    step = max(len(data) // 600, 1)
    blocks = data[: len(data) // step * step].reshape(-1, step)
    times = np.arange(len(blocks)) * step / record.rate
    with np.errstate(invalid="ignore"):
        axis.fill_between(times, np.nanmin(blocks, axis=1), np.nanmax(blocks, axis=1), color=MEASURED, lw=0.4)
    for start, stop in (*record.channels[channel].gaps, *record.channels[channel].clipped):
        axis.axvspan(start / record.rate, max(stop / record.rate, (start + 1) / record.rate), color="#e69f00")
    axis.set(xlabel="time [s]", ylabel=label(channel, record.channels[channel].unit))
    axis.margins(x=0.01)
    axis.set_title(f"{channel}, whole record")


def _close(axis: Any, record: Record, channel: str) -> None:
    drive = record.excitation
    period = record.rate / drive.frequency if drive is not None and drive.frequency > 0 else len(record) / 60
    count = int(min(len(record), max(SHOWN * period, 50)))
    axis.plot(record.times[:count], record[channel][:count], lw=0.9)
    axis.set(xlabel="time [s]", ylabel=label(channel, record.channels[channel].unit))
    axis.set_title("close view")


def _spectrum(axis: Any, record: Record, channel: str) -> None:
    data = np.nan_to_num(record[channel] - np.nanmean(record[channel]))
    length = min(len(data), 1 << int(np.log2(max(len(data) // 4, 16))))
    window = np.hanning(length)
    starts = range(0, len(data) - length + 1, max(length // 2, 1))
    power = np.mean([np.abs(np.fft.rfft(data[s : s + length] * window)) ** 2 for s in starts], axis=0)
    level = 10 * np.log10(np.maximum(power[1:] / power.max(), 1e-16))
    axis.plot(np.fft.rfftfreq(length, record.dt)[1:], level, lw=0.8)
    if record.excitation is not None:
        axis.axvline(record.excitation.frequency, color=SOFT, lw=0.7, ls=":")
    axis.set(xlabel="frequency [Hz]", ylabel="power [dB]")
    axis.set_title("spectrum")


def _section(axis: Any, record: Record, channel: str) -> None:
    """The signal and its rate of change once a period of the drive."""
    from analysis import sample_at, strobe_positions

    drive = record.excitation
    assert drive is not None
    data = record[channel]
    rows = np.stack([data, np.gradient(data, record.dt)])
    at = strobe_positions(drive.phase or 0.0, drive.frequency, record.rate, len(data))
    points = sample_at(rows, at[(at >= 1) & (at < len(data) - 2)])
    axis.plot(*points, ".", ms=1.6, color=MEASURED, rasterized=len(at) > 2000)
    unit = record.channels[channel].unit
    axis.set(xlabel=label(channel, unit), ylabel=label(f"d{channel}/dt", f"{unit}/s" if unit else "1/s"))
    axis.set_title("stroboscopic section")
