"""The shipped recording of the virtual rig: driven by the measured table motion, a model is found."""

from pathlib import Path

import numpy as np

from analysis.estimate.methods import identify
from drivers.formats import read
from drivers.library import load_model

RECORDING = Path(__file__).parents[2] / "resources" / "recordings" / "two-well-chaos.h5"
TRUTH = {"c": 0.035, "k1": -0.28, "k2": 0.178, "k3": 0.336, "k4": -0.064}  # of the rig's own specimen


def test_given_the_measured_table_motion_as_drive_when_identified_then_error_bars_hold_the_truth():
    record = read(RECORDING).cut(0, 4000)
    model = load_model("beam_on_shaker")
    result = identify(model, record, "auto")  # from the guesses that it ships with
    assert result.converged
    assert result.method == "weak"  # x' = w v: the velocity follows from the strain
    off = np.array([(result.parameters[n].value - v) / result.parameters[n].stderr for n, v in TRUTH.items()])
    assert np.abs(off).max() < 4
    assert result.parameters["c"].stderr < 0.01 * TRUTH["c"]
