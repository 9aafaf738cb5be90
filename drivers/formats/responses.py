"""Frequency responses to files: UFF58 (text), MATLAB and CSV.

The CSV file is read again by ``validate --transfer``: frequency, real, imag, coherence.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from analysis import DataError, FrequencyResponse, LinearApproximation
from drivers.base.files import replaced
from drivers.formats.uff58 import DELIMITER

Response: TypeAlias = FrequencyResponse | LinearApproximation
Array = NDArray[np.float64]

FREQUENCY_AXIS = 18
FRF, COHERENCE = 4, 6  # functions of dataset 58
REAL, COMPLEX = 4, 6  # double precision


def write_response(found: Response, path: Path | str) -> None:
    """Write a response in the format that the name's ending asks for."""
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise DataError(f"A response is saved as {', '.join(WRITERS)}, not as '{path.name}'.")
    with replaced(path) as partial:
        writer(found, partial)


def columns(found: Response) -> dict[str, Array]:
    """What is known line by line, beside the frequency."""
    known = {"real": found.response.real, "imag": found.response.imag}
    if isinstance(found, FrequencyResponse):
        return {**known, "coherence": found.coherence, "stderr": found.stderr}
    return {**known, "noise": found.noise, "distortion": found.distortion}


def _write_csv(found: Response, path: Path) -> None:
    unit = f" [{found.unit}]" if found.unit else ""
    known = columns(found)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["frequency [Hz]", *(name + (unit if name != "coherence" else "") for name in known)])
        for row in zip(found.frequency, *known.values(), strict=True):
            writer.writerow([f"{value:.12g}" if np.isfinite(value) else "" for value in row])


def _write_mat(found: Response, path: Path) -> None:
    from scipy.io import savemat

    known = columns(found)
    content = {
        "frequency": found.frequency,
        "response": found.response,
        **{name: values for name, values in known.items() if name not in ("real", "imag")},
        "unit": found.unit,
        "input": found.input,
        "output": found.output,
    }
    savemat(str(path), content, appendmat=False, oned_as="column")


def _write_uff(found: Response, path: Path) -> None:
    with path.open("w", encoding="latin-1", errors="replace", newline="\n") as file:
        for line in _dataset(found, FRF, found.response):
            file.write(line + "\n")
        if isinstance(found, FrequencyResponse):
            for line in _dataset(found, COHERENCE, found.coherence):
                file.write(line + "\n")


def _dataset(found: Response, function: int, values: NDArray[np.inexact]) -> Iterator[str]:
    """One dataset 58 in text: eleven lines of header, then the values."""
    f, is_complex = found.frequency, np.iscomplexobj(values)
    even = isinstance(found, FrequencyResponse) and len(f) > 1
    step = float(f[1] - f[0]) if even else 0.0
    unit = found.unit if function == FRF else ""
    yield DELIMITER.decode()
    yield f"{58:6d}"
    yield f"{found.output or 'output'} over {found.input or 'input'}"[:80]
    yield from ["NONE"] * 4
    yield (
        f"{function:5d}{0:10d}{1:5d}{0:10d} {_short(found.output, 10)}{1:10d}{0:4d} "
        f"{_short(found.input, 10)}{1:10d}{0:4d}"
    )
    kind = COMPLEX if is_complex else REAL
    yield f"{kind:10d}{len(f):10d}{int(even):10d}{f[0]:13.5E}{step:13.5E}{0.0:13.5E}"
    yield f"{FREQUENCY_AXIS:10d}{0:5d}{0:5d}{0:5d} {'Frequency':20s} {'Hz':20s}"
    yield f"{0:10d}{0:5d}{0:5d}{0:5d} {_short(found.output, 20)} {_short(unit, 20)}"
    yield f"{0:10d}{0:5d}{0:5d}{0:5d} {_short(found.input, 20)} {_short('', 20)}"
    yield f"{0:10d}{0:5d}{0:5d}{0:5d} {'NONE':20s} {'NONE':20s}"
    parts = np.stack([values.real, values.imag], axis=1) if is_complex else values[:, None]
    if even:
        flat = parts.ravel()
        for start in range(0, len(flat), 4):
            yield "".join(f"{v:20.11E}" for v in flat[start : start + 4])
    else:
        for at, row in zip(f, parts, strict=True):
            yield f"{at:13.5E}" + "".join(f"{v:20.11E}" for v in row)
    yield DELIMITER.decode()


def _short(text: str, width: int) -> str:
    return ("".join(text.split())[:width] or "NONE").ljust(width)


WRITERS: dict[str, Callable[[Response, Path], None]] = {
    ".csv": _write_csv,
    ".mat": _write_mat,
    ".uff": _write_uff,
    ".unv": _write_uff,
}
