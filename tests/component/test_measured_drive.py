"""The shipped recording of the virtual rig: driven by the measured table motion, a model is found."""

from pathlib import Path

import numpy as np

from analysis.estimate.methods import identify
from drivers.formats import read
from drivers.library import load_model

RECORDING = Path(__file__).parents[2] / "resources" / "recordings" / "two-well-chaos.h5"


def test_given_the_measured_table_motion_as_drive_when_identified_then_error_bars_hold_the_truth():
    record = read(RECORDING).cut(0, 4000)
    model = load_model("beam_on_shaker")
    truth = {name: model.parameters[name].value for name in model.free}
    result = identify(model.with_values({n: 1.3 * v for n, v in truth.items()}), record, "auto")
    assert result.converged
    assert result.method == "weak"  # x' = w v: the velocity follows from the strain
    off = np.array([(result.parameters[n].value - v) / result.parameters[n].stderr for n, v in truth.items()])
    assert np.abs(off).max() < 4
    assert result.parameters["c"].stderr < 0.01 * truth["c"]
