"""Makes the example recording of the damaged cantilever: `python -m resources.beams.make_damaged FILE.csv`.

A swept sine of the base, 1 % noise on every laser point, seed 1. The stiffness dips by 25 % near x = 0.3 m.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from analysis.base.record import Record
from analysis.estimate.functions.beam import load, simulate

RATE, SECONDS = 800.0, 1.6


def stiffness(x: np.ndarray) -> np.ndarray:
    return 20.0 * (1.0 - 0.25 * np.exp(-(((x - 0.3) / 0.06) ** 2)))


def recording() -> Record:
    text = Path(__file__).with_name("damaged-cantilever.toml").read_text(encoding="utf-8")
    beam = load(text).with_profile("stiffness", shape=stiffness, free=False)
    beam = beam.with_profile("viscous", shape=0.8, free=False)
    beam = beam.with_profile("kelvin_voigt", shape=2e-3, free=False)
    t = np.arange(int(RATE * SECONDS)) / RATE
    sweep = 5.0 * np.sin(2 * np.pi * (2.0 * t + 248.0 * t**2 / (2 * SECONDS))) * np.minimum(1.0, t / 0.05)
    clean = simulate(beam, Record.from_arrays(RATE, {"a": sweep}), elements=40)
    rng = np.random.default_rng(1)
    noisy = {
        s.name: clean[s.name] + 0.01 * np.std(clean[s.name]) * rng.standard_normal(len(t))
        for s in beam.sensors
    }
    return Record.from_arrays(RATE, {"a": sweep, **noisy})


def main() -> None:
    record = recording()
    columns = [record.times, *(record[name] for name in record.names)]
    header = ",".join(["t", *record.names])
    np.savetxt(sys.argv[1], np.array(columns).T, "%.6g", ",", header=header, comments="")


if __name__ == "__main__":
    main()
