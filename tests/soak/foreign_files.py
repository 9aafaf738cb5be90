"""Small good files as other programs write them: variants of formats that our own writers do not make."""

from __future__ import annotations

import io
import struct
import wave
import zipfile
from functools import cache

import numpy as np

SAMPLES = 200
RATE = 100
PROJECT = b"""title = "Beam 7"
specimen = "beam"
operator = "A. B."
temperature = 21.5
notes = "none"
rig = "two_well_beam"
created = "2026-03-01T10:00:00+01:00"
[own]
lot = "7"
"""


@cache
def foreign_files() -> dict[str, bytes]:
    """By name; the ending is the one that such files have."""
    rng = np.random.default_rng(2)
    x, v = rng.standard_normal((2, SAMPLES))
    return {**_matlab(x, v), **_sound(x), **_universal(x), "archive.zip": archive()}


def _matlab(x: np.ndarray, v: np.ndarray) -> dict[str, bytes]:
    from scipy.io import savemat

    plain = {"x": x, "v": v, "fs": float(RATE), "t": np.arange(SAMPLES) / RATE}
    nested = {**plain, "info": {"name": "beam", "units": ["mm", "mm/s"], "parts": {"deep": [1, 2]}}}
    found = {}
    for name, content, options in (
        ("version4.mat", plain, {"format": "4"}),
        ("packed.mat", nested, {"do_compression": True}),
        ("nested.mat", nested, {}),
    ):
        file = io.BytesIO()
        savemat(file, content, **options)
        found[name] = file.getvalue()
    found["version73.mat"] = _matlab_in_hdf5(plain)
    return found


def _matlab_in_hdf5(content: dict[str, object]) -> bytes:
    import h5py

    file = io.BytesIO()
    with h5py.File(file, "w", userblock_size=512) as out:
        for name, values in content.items():
            out[name] = np.atleast_2d(np.asarray(values, float)).T
            out[name].attrs["MATLAB_class"] = np.bytes_(b"double")
    data = bytearray(file.getvalue())
    data[:128] = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + struct.pack("<H2s", 0x0200, b"IM")
    return bytes(data)


def _sound(x: np.ndarray) -> dict[str, bytes]:
    from scipy.io import wavfile

    found = {}
    for width in (1, 2, 3, 4):
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(2)
            out.setsampwidth(width)
            out.setframerate(RATE)
            out.writeframes(bytes(range(256)) * (SAMPLES * 2 * width // 256))
        found[f"bits{8 * width}.wav"] = file.getvalue()
    for kind in (np.float32, np.float64):
        file = io.BytesIO()
        wavfile.write(file, RATE, (0.1 * x).astype(kind))
        found[f"{kind.__name__}.wav"] = file.getvalue()
    large = bytearray(found["bits16.wav"])
    large[:4] = b"RF64"
    sizes = struct.pack("<4sIQQQI", b"ds64", 28, len(large) + 28, len(large) - 44, SAMPLES, 0)
    found["rf64.wav"] = bytes(large[:12]) + sizes + bytes(large[12:])
    return found


def _universal(x: np.ndarray) -> dict[str, bytes]:
    """A data set 58 in its binary form, between two of other kinds."""
    values = x.astype("<f4").tobytes()
    head = f"{'58b':>6}{1:6d}{2:6d}{11:12d}{len(values):12d}{0:6d}{0:6d}{0:12d}{0:12d}\n"
    lines = ["beam", "NONE", "01-MAR-26 10:00:00", "NONE", "NONE"]
    function = f"{1:5d}{0:10d}{1:5d}{0:10d} {'NONE':10}{1:10d}{3:4d} {'NONE':10}{0:10d}{0:4d}"
    form = f"{2:10d}{len(x):10d}{1:10d}{0.0:13.5e}{1 / RATE:13.5e}{0.0:13.5e}"
    axes = [f"{17:10d}{0:5d}{0:5d}{0:5d} {'Time':20} {'s':20}"]
    axes += [f"{kind:10d}{0:5d}{0:5d}{0:5d} {'x':20} {'mm':20}" for kind in (8, 0, 0)]
    text = head + "\n".join([*lines, function, form, *axes]) + "\n"
    other = b"    -1\n   164\n         1SI: Metre (newton)           2\n    -1\n"
    return {"binary.uff": other + b"    -1\n" + text.encode("ascii") + values + b"\n    -1\n" + other}


def archive(entries: dict[str, bytes] | None = None, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A project as one file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        for name, content in (
            entries or {"project.toml": PROJECT, "recordings/a.csv": b"t,x\n0,1\n"}
        ).items():
            out.writestr(name, content)
    return file.getvalue()
