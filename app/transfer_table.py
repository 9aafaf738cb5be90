"""A measured transfer function from a table: columns frequency, real, imag and, if known, coherence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from analysis import DataError, FrequencyResponse, Record
from drivers.base.files import read_text


def read_transfer(path: str, recording: Callable[[str], Record]) -> FrequencyResponse | Record:
    """A table of a transfer function, or a recording (read by ``recording``) from which it is computed."""
    if Path(path).suffix.lower() not in (".csv", ".txt"):
        return recording(path)
    lines = read_text(path, "a table of numbers").splitlines()
    header = [name.strip().lower().split(" [")[0] for name in lines[0].split(",")] if lines else []
    if "frequency" not in header:
        return recording(path)
    if not {"real", "imag"} <= set(header):
        raise DataError(
            f"{Path(path).name} needs the columns frequency, real and imag (and coherence, if known)."
        )
    try:
        rows = np.array([[float(v) for v in line.split(",")] for line in lines[1:] if line.strip()])
        columns = dict(zip(header, rows.T, strict=True))
    except ValueError:
        raise DataError(f"{Path(path).name} is not a table of numbers below its header.") from None
    coherence = columns.get("coherence", np.ones(len(rows)))
    return FrequencyResponse(columns["frequency"], columns["real"] + 1j * columns["imag"], coherence)
