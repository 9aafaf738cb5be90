"""The period of the drive as a command's options ask for it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from analysis import DataError, drive_frequency

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis import Record


def drive_period(
    record: Record, args: argparse.Namespace, response: NDArray[np.float64]
) -> tuple[float | None, list[str]]:
    """Samples per drive period, and remarks; None for an autonomous system or when nothing is known.

    From the recorded drive if it is named; otherwise from the frequency given or stored with the record,
    corrected by the line that the drive leaves in the response (generator and converter seldom share a
    clock).
    """
    if args.autonomous:
        return None, []
    if args.period_of:
        return 1.0 / drive_frequency(record[args.period_of]), []
    frequency = args.frequency
    if frequency is None and record.excitation is not None and record.excitation.waveform == "sine":
        frequency = record.excitation.frequency
    if frequency is None:
        return None, []
    if not 0 < frequency < record.rate / 4:
        raise DataError(
            f"A drive of {frequency:g} Hz cannot be followed at {record.rate:g} samples a second."
        )
    nominal = frequency / record.rate
    found = drive_frequency(response, nominal)
    off = found / nominal - 1
    if abs(off) * len(response) * nominal < 0.01:  # less than a hundredth of a period over the whole record
        return 1.0 / nominal, []
    return 1.0 / found, [
        f"In the response the drive has {found * record.rate:.9g} Hz, {1e6 * off:+.2f} ppm from the "
        "frequency given: the clocks differ, and the frequency found was used."
    ]
