"""The period of the drive as a command's options ask for it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from analysis import DataError, drive_frequency, line_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis import Record


_SURE = 5.0  # standard errors from which another frequency than the one given is believed
_WRONG = 0.02  # a frequency that is this much off is still found


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
    return corrected_period(response, frequency, record.rate)


def corrected_period(response: NDArray[np.float64], frequency: float, rate: float) -> tuple[float, list[str]]:
    """Samples per period of a drive of ``frequency`` (Hz) as the response shows it, and what differs."""
    nominal = frequency / rate
    found = drive_frequency(response, nominal)
    if found == nominal:  # no clear line there: the frequency itself may be wrong, not only the clock
        found = drive_frequency(response, nominal, within=_WRONG)
        if found == nominal:
            return 1.0 / nominal, [
                f"The response has no clear line within {100 * _WRONG:g} % of {frequency:g} Hz: the drive's "
                "frequency could not be confirmed."
            ]
    off = found / nominal - 1
    # Less than a hundredth of a period over the whole record, or than chaos moves a line by itself.
    if abs(off) * len(response) * nominal < 0.01 or abs(found - nominal) < _SURE * line_error(
        response, found
    ):
        return 1.0 / nominal, []
    size = f"{1e6 * off:+.2f} ppm" if abs(off) < 1e-3 else f"{100 * off:+.3g} %"
    cause = "the clocks differ" if abs(off) < 1e-3 else "the frequency given is wrong"
    return 1.0 / found, [
        f"In the response the drive has {found * rate:.9g} Hz, {size} from the frequency given: "
        f"{cause}, and the frequency found was used."
    ]
