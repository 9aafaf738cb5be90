"""Do the error bars of real records hold? Repeats, halves and parts of each, fitted one by one.

`python -m benchmarks.coverage.repeats FOLDER [NAME ...]`

The parts of one experiment have the same parameters, so the differences between them show what the errors
should be: z = (a - b) / sqrt(s_a^2 + s_b^2) of all pairs, once with the errors of white noise and a right
model and once with those reported. FOLDER holds the records named below (pendulum, emps, silverbox,
cascaded-tanks, friction-damper; sources in tests/component/test_real_files.py).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np

from analysis.base.errors import ShakedownError
from analysis.base.identification import Identification
from analysis.base.record import Record
from analysis.estimate.methods import identify
from analysis.model import Model
from app.output import table
from drivers.library import load_model

Parts = tuple[Model, list[Record], dict[str, object]]

FRICTION = """name = "Friction damper"
[states]
z = "A*(w - (1 - g)*abs(w)*z - g*w*abs(z))"
[inputs]
d = "measured"
w = "measured"
[outputs]
F = "c*w + k*d + a*z + f0"
[parameters]
A = { guess = 10, lower = 0.1, upper = 1000 }
g = { guess = 0.5, lower = 0, upper = 1 }
a = { guess = 1.5 }
c = { guess = 0.0 }
k = { guess = 0.0 }
f0 = { guess = 0.0 }
[initial]
z = 0.0
"""


def pendulum(folder: Path) -> Parts:
    """Six releases of one pendulum."""
    from scipy.io import loadmat

    data = loadmat(folder / "pendulum" / "SinglePendulumDataForParameterEstimation.mat")
    swings = [np.asarray(y[0], dtype=np.float64)[0, ::5] for key in ("Y_id", "Y_vad") for y in data[key]]
    records = [Record.from_arrays(200.0, {"angle": angle - np.pi}) for angle in swings]  # from the lower rest
    return load_model("pendulum").with_values({"w2": 50.0, "c": 0.1, "mu": 0.1}), records, {}


def emps(folder: Path) -> Parts:
    """Two halves of a positioning task."""
    from scipy.io import loadmat

    data = loadmat(folder / "emps" / "nlid_emps_sim_data_training.mat")
    force = np.ravel(data["gtau"]) * np.ravel(data["vir"])
    record = Record.from_arrays(1000.0, {"q": np.ravel(data["qm"]), "force": force})
    half = len(record) // 2
    return load_model("emps"), [record.cut(0, half), record.cut(half, len(record))], {"inputs": "hold"}


def silverbox(folder: Path) -> Parts:
    """Four of the multisine realisations."""
    data = np.genfromtxt(folder / "silverbox" / "SNLS80mV.csv", delimiter=",", skip_header=1)[:, :2]
    records = []
    for k in range(4):
        first = 41_000 + 8_700 * k
        u, y = data[first : first + 8_000].T
        records.append(Record.from_arrays(1e7 / 2**14, {"u": u, "y": y}))
    return load_model("silverbox"), records, {}


def friction(folder: Path) -> Parts:
    """Three parts of the slower test."""
    data = np.genfromtxt(folder / "friction-damper" / "sine-0.25Hz-1.5in.csv", delimiter=",", skip_header=1)
    record = Record.from_arrays(128.0, {"d": data[:, 1], "F": data[:, 2], "w": data[:, 3]})
    edges = np.linspace(0, len(record), 4).astype(int)
    parts = [record.cut(int(a), int(b)) for a, b in pairwise(edges)]
    return Model.from_toml(FRICTION), parts, {"denoise": False}


def tanks(folder: Path) -> Parts:
    """The two passes of the cascaded tanks: one for fitting, one for testing."""
    data = np.genfromtxt(folder / "cascaded-tanks" / "dataBenchmark.csv", delimiter=",", skip_header=1)
    records = [Record.from_arrays(0.25, {"u": data[:, i], "h2": data[:, 2 + i]}) for i in (0, 1)]
    return load_model("cascaded_tanks"), records, {"inputs": "hold"}


CASES: dict[str, Callable[[Path], Parts]] = {
    "pendulum": pendulum,
    "emps": emps,
    "silverbox": silverbox,
    "friction": friction,
    "tanks": tanks,
}


def differences(results: list[Identification], ideal: bool) -> np.ndarray:
    """z of every parameter in every pair of results."""
    found = []
    for a, b in combinations(results, 2):
        for name in a.parameters:
            if name not in b.parameters or name.endswith("(0)"):
                continue
            first, second = a.parameters[name], b.parameters[name]
            sizes = (
                (first.stderr_ideal, second.stderr_ideal)
                if ideal
                else (first.stderr * _wide(first), second.stderr * _wide(second))
            )
            found.append((first.value - second.value) / np.hypot(*sizes))
    return np.array([z for z in found if np.isfinite(z)])


def _wide(estimate: object) -> float:
    """Width of the interval over that of a normal estimate: Student's quantiles count."""
    return (estimate.upper - estimate.lower) / (2 * 1.959964 * estimate.stderr)  # type: ignore[attr-defined, no-any-return]


def identified(case: Parts, method: str) -> Iterator[Identification]:
    model, records, options = case
    for record in records:
        try:
            yield identify(model, record, method, **options)
        except ShakedownError as error:
            print("  ", error)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage.repeats", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=", ".join(CASES))
    parser.add_argument("--method", default="auto")
    args = parser.parse_args()
    rows = []
    for name in args.names or CASES:
        started = time.process_time()
        results = list(identified(CASES[name](args.folder), args.method))
        for result in results:
            print(result)
        ideal, honest = differences(results, True), differences(results, False)
        rms = [float(np.sqrt(np.mean(z**2))) for z in (ideal, honest)]
        worst = [float(np.abs(z).max()) for z in (ideal, honest)]
        verdicts = ", ".join(
            f"{v} {sum(r.verdict == v for r in results)}" for v in dict.fromkeys(r.verdict for r in results)
        )
        rows.append(
            (name, len(results), verdicts, rms[0], worst[0], rms[1], worst[1], time.process_time() - started)
        )
    print(
        table(
            ("record", "parts", "verdicts", "ideal rms z", "worst", "reported rms z", "worst", "CPU s"), rows
        )
    )


if __name__ == "__main__":
    main()
