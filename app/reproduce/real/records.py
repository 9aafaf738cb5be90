"""Where the public measurements lie, and how each is read. They are not part of the program."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from analysis import Record, ShakedownError

Array = NDArray[np.float64]

FOLDER = Path(os.environ.get("SHAKEDOWN_DATA", Path(__file__).parents[4] / "shared" / "data"))
SOURCES = {
    "silverbox": "https://www.nonlinearbenchmark.org/benchmarks/silverbox (SNLS80mV.csv)",
    "emps": "https://www.nonlinearbenchmark.org/benchmarks/emps (nlid_emps_sim_data_training.mat)",
    "cascaded-tanks": "https://www.nonlinearbenchmark.org/benchmarks/cascaded-tanks (dataBenchmark.csv)",
    "pendulum": "https://github.com/dynamicslab/MultiArm-Pendulum "
    "(SinglePendulumDataForParameterEstimation.mat)",
    "friction-damper": "https://github.com/ARTS-Laboratory/Dataset-Friction-Damper-with-Backlash "
    "(thinned to 128 Hz)",
    "cantilever": "https://github.com/ARTS-Laboratory (Dataset-4, steel cantilever, FFT_data.lvm)",
}
SILVERBOX_RATE = 1e7 / 2**14  # Hz
# The official split of the package nonlinear-benchmarks: the arrow and the last quarter of the multisines are
# for testing; of a test the first 50 samples are given.
ARROW, MULTISINES = (100, 40_575), (40_650, 127_400)
TRAINED, INSIDE, WINDOW = 0.75, 32_000, 50

PEAK, AROUND, LOWEST = 12.0, 60, 2.0  # dB, lines on each side (5 Hz), and Hz, of peaks of a spectrum


def located(folder: str, name: str) -> Path:
    """A file of the measurements; a sentence that says where to get it, where it is not there."""
    path = FOLDER / folder / name
    if not path.is_file():
        raise ShakedownError(
            f"The measurement {folder}/{name} is not part of the program: get it from {SOURCES[folder]} and "
            "name the folder that holds the folder of that name in the environment variable SHAKEDOWN_DATA."
        )
    return path


def silverbox() -> tuple[Record, dict[str, Record]]:
    """Training record and test records: multisine, arrow, arrow within the amplitudes of the training."""
    rows = _table("silverbox", "SNLS80mV.csv")[:, :2]

    def part(first: int, stop: int) -> Record:
        u, y = rows[first:stop].T
        return Record.from_arrays(SILVERBOX_RATE, {"u": u, "y": y})

    edge = MULTISINES[0] + int(TRAINED * (MULTISINES[1] - MULTISINES[0]))
    return part(MULTISINES[0], edge), {
        "multisine": part(edge, MULTISINES[1]),
        "arrow": part(*ARROW),
        "arrow without extrapolation": part(ARROW[0], ARROW[0] + INSIDE),
    }


def emps() -> Record:
    """Position of the carriage and force of the motor (gain times voltage)."""
    from scipy.io import loadmat

    data = loadmat(located("emps", "nlid_emps_sim_data_training.mat"))
    force = np.ravel(data["gtau"]) * np.ravel(data["vir"])
    return Record.from_arrays(1000.0, {"q": np.ravel(data["qm"]), "force": force})


def pendulum() -> list[Record]:
    """Releases of an arm with an encoder, thinned to 200 Hz; the angle from the lower rest."""
    from scipy.io import loadmat

    data = loadmat(located("pendulum", "SinglePendulumDataForParameterEstimation.mat"))
    swings = [np.asarray(y[0], dtype=np.float64)[0, ::5] - np.pi for y in data["Y_id"]]
    return [Record.from_arrays(200.0, {"angle": angle}) for angle in swings]


def friction_damper(name: str) -> Record:
    """Displacement, velocity and force of a banded rotary friction device."""
    rows = _table("friction-damper", name)
    return Record.from_arrays(128.0, {"d": rows[:, 1], "F": rows[:, 2], "w": rows[:, 3]})


def tanks() -> tuple[Record, Record]:
    """Training and test record of two tanks: voltage of the pump, level of the lower tank."""
    rows = _table("cascaded-tanks", "dataBenchmark.csv")
    fitted, test = (Record.from_arrays(0.25, {"u": rows[:, i], "h2": rows[:, 2 + i]}) for i in (0, 1))
    return fitted, test


def cantilever() -> Array:
    """Clear peaks of a steel cantilever's measured spectrum in Hz, ascending."""
    from scipy.signal import find_peaks

    path = located("cantilever", "FFT_data.lvm")
    f, level = np.genfromtxt(path, skip_header=24, usecols=(0, 1), max_rows=8000).T  # 0 to 680 Hz, dB
    peaks, _ = find_peaks(level, prominence=PEAK, distance=AROUND)
    floors = [float(np.median(level[max(p - AROUND, 0) : p + AROUND])) for p in peaks]
    clear = [p for p, floor in zip(peaks, floors, strict=True) if f[p] > LOWEST and level[p] > floor + PEAK]
    return np.asarray(f[clear])


def _table(folder: str, name: str) -> Array:
    return np.asarray(np.genfromtxt(located(folder, name), delimiter=",", skip_header=1), dtype=np.float64)
