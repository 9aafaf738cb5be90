"""The three systems of Liu et al. 2018, and two real machines, identified by default options."""

from pathlib import Path

import numpy as np
import pytest

from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.finish.fit import fit
from analysis.estimate.methods import begin, identify
from analysis.model import Model
from analysis.signal.inputs import Inputs
from analysis.simulation.simulate import simulate
from app.reproduce.liu2018 import chua_case, miura_case, overall_error, tank_case
from drivers.library import load_model

SHARED = Path(__file__).parents[2].parent / "shared" / "data"


def found_by_weak(model: Model, record: Record, judged: bool) -> dict[str, float]:
    """The values that `weak` ends at; with the verdict on them, which costs several times as much, or not."""
    if judged:
        result = identify(model, record, "weak")
        assert result.converged and result.verdict == "fits"
        return result.values()
    begun = begin(model, [record], "weak", SILENT, {})
    found = fit(begun.experiment, begun.start)
    assert found.converged
    return dict(zip(found.names, found.estimate, strict=True))


@pytest.mark.parametrize(("decibels", "most"), [(30, 5e-4), (20, 2e-3), (10, 8e-3)])
def test_given_chua_circuits_in_noise_when_identified_then_overall_error_is_small(decibels, most):
    truth = load_model("chua")
    model, record = chua_case(decibels, 1)
    plain = identify(model, record, "weak", plain=True)
    found = found_by_weak(model, record, judged=decibels == 10)
    error = overall_error(truth.with_values(found), truth)
    assert error < most
    assert overall_error(plain, truth) > 8 * error


def test_given_stepped_inputs_when_the_tank_is_identified_then_the_steps_leave_no_bias():
    truth = load_model("tank_reactor")
    model, record = tank_case(300, 0)
    clean = identify(model, record, "weak", finish=False)
    for name in truth.free:
        assert clean.parameters[name].value == pytest.approx(truth.parameters[name].value, rel=2e-4)
    errors = []
    for seed in range(6):
        model, record = tank_case(40, seed)
        found = found_by_weak(model, record, judged=False)
        errors.append([found[n] / truth.parameters[n].value - 1 for n in truth.free])
    assert np.all(np.sqrt(np.mean(np.square(errors), axis=0)) < [5e-4, 5e-4, 1e-3])


@pytest.mark.parametrize(("decibels", "most"), [(30, 0.005), (20, 0.01)])
def test_given_the_papers_guess_when_the_miura_ori_is_identified_then_all_five_are_found(decibels, most):
    truth = load_model("miura_ori_measured")
    model, record = miura_case(decibels, 0)
    found = found_by_weak(model, record, judged=decibels == 20)
    for name in truth.free:
        assert found[name] == pytest.approx(truth.parameters[name].value, rel=most)
    assert _force_curve_error(truth, {name: found[name] for name in truth.free}) < 0.01


def _force_curve_error(truth, values):
    heights = np.linspace(0.043, 0.093, 200)

    def force(given):
        p = truth.values(given)
        X = np.vstack([heights - p[truth.index("X0")], np.zeros(200)])
        dX = np.empty_like(X)
        truth.kernels().rhs_many(np.zeros(200), X, np.zeros((2, 200)), p, dX)
        return -p[truth.index("m")] * dX[1]

    true, found = force({}), force(values)
    assert np.count_nonzero(np.diff(np.sign(found))) == 3  # two stable states and the unstable one between
    return np.abs(found - true).max() / np.ptp(true)


def test_given_runs_with_origins_of_their_own_and_drift_when_fitted_together_then_both_are_found():
    truth = load_model("miura_ori_measured")
    origins, drifts = (0.0, 0.002, -0.003), (2e-4, -1e-4, 3e-4)  # m, m/s
    cases = [miura_case(30, i, origin, 0.0413 - 0.001 * i) for i, origin in enumerate(origins)]
    records = []
    for (_, record), drift in zip(cases, drifts, strict=True):
        part = record.cut(0, 2000)
        records.append(part.with_channels(X=part["X"] + drift * np.arange(2000) / 1000))
    result = identify(cases[0][0], records, "weak", per_record=("X0",), drifts=("X",))
    assert result.converged
    for i, (origin, drift) in enumerate(zip(origins, drifts, strict=True)):
        found = result.parameters[f"X0[{i + 1}]"]
        assert found.value == pytest.approx(truth.parameters["X0"].value - origin, abs=4 * found.stderr)
        rate = result.parameters[f"drift X[{i + 1}]"]
        assert rate.value == pytest.approx(drift, abs=4 * rate.stderr)
        assert rate.stderr < 5e-5
    assert result.parameters["k2"].value == pytest.approx(truth.parameters["k2"].value, rel=0.005)


@pytest.mark.skipif(not (SHARED / "silverbox").exists(), reason="benchmark data not at hand")
def test_given_silverbox_multisines_when_identified_then_the_arrow_is_predicted():
    data = np.genfromtxt(SHARED / "silverbox" / "SNLS80mV.csv", delimiter=",", skip_header=1)[:, :2]
    rate = 1e7 / 2**14
    u, y = np.ascontiguousarray(data.T)
    training = Record.from_arrays(rate, {"u": u[40650:65226], "y": y[40650:65226]})
    model = load_model("silverbox")
    guess = {name: 1.3 * p.value for name, p in model.parameters.items()}
    found = found_by_weak(model.with_values(guess), training, judged=False)
    inputs = Inputs.from_samples(0.0, 1 / rate, u[None, :40500])
    times = np.arange(40500) / rate
    start = np.array([y[0], 0.0])
    arrow = simulate(model, times, start, found, inputs, rtol=1e-7, atol=1e-9).states[0]
    assert np.sqrt(np.mean((arrow - y[:40500]) ** 2)) < 0.6e-3


@pytest.mark.skipif(not (SHARED / "emps").exists(), reason="benchmark data not at hand")
def test_given_the_positioning_axis_when_identified_then_friction_is_as_published():
    from scipy.io import loadmat

    raw = loadmat(SHARED / "emps" / "nlid_emps_sim_data_training.mat")
    force = float(raw["gtau"].item()) * raw["vir"].ravel()
    record = Record.from_arrays(1000, {"q": raw["qm"].ravel(), "force": force})
    model = load_model("emps")
    published = {name: model.parameters[name].value for name in model.free}
    result = identify(model.with_values({n: 1.3 * v for n, v in published.items()}), record, "weak")
    for name, most in {"M": 0.01, "Fv": 0.06, "Fc": 0.06, "offset": 0.05}.items():
        assert result.parameters[name].value == pytest.approx(published[name], rel=most)
    assert any("model is too simple" in words for words in result.warnings)
