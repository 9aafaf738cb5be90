"""Beams: the Galerkin space, the modal response with sensitivities, and what is found from records."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

from analysis.base.errors import DataError, ModelError
from analysis.base.progress import SILENT
from analysis.base.record import Record
from analysis.estimate.functions.beam import Beam, Options, identify, load, simulate
from analysis.estimate.functions.beam.description import Scalar
from analysis.estimate.functions.beam.examples import (
    BANKS,
    banks_beam,
    banks_coverage,
    banks_error,
    banks_record,
    banks_stiffness,
)
from analysis.estimate.functions.beam.galerkin import spline_space
from analysis.estimate.functions.beam.observation import observe
from analysis.estimate.functions.beam.study import convergence
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import layout
from tests.hermite_beam import HermiteBeam

# roots of cosh(b) cos(b) = -1 (cantilever) and = 1 (free-free, clamped-clamped), to 12 digits
CANTILEVER = np.array([1.875104068712, 4.694091132974, 7.854757438238, 10.995540734875])
FREE = np.array([4.730040744863, 7.853204624096, 10.995607838002])


def uniform(left, right, elements=16):
    return load(
        f"""
        name = "uniform"
        [beam]
        length = 1.0
        left = "{left}"
        right = "{right}"
        elements = {elements}
        [stiffness]
        guess = 1.0
        [mass]
        value = 1.0
        """
    )


def frequencies(beam):
    unknowns = layout(beam)
    system = BeamSystem(beam, unknowns)
    return system.frequencies(system.state(unknowns.start))[0] * 2 * np.pi


@pytest.mark.parametrize(
    ("left", "right", "roots"),
    [
        ("pinned", "pinned", np.pi * np.arange(1, 5)),
        ("clamped", "free", CANTILEVER),
        ("free", "clamped", CANTILEVER),
        ("clamped", "clamped", FREE),
        ("free", "free", FREE),
    ],
)
def test_given_uniform_beam_when_solved_then_closed_form_frequencies(left, right, roots):
    np.testing.assert_allclose(frequencies(uniform(left, right))[: len(roots)], roots**2, rtol=2e-6)


def test_given_500_elements_when_solved_then_banded_and_accurate():
    space = spline_space(1.0, 500, "clamped", "free")
    stiffness = space.bending(np.ones(len(space.points)))
    rows, columns = stiffness.nonzero()
    assert np.max(np.abs(rows - columns)) <= 5
    assert stiffness.nnz < 12 * space.size
    np.testing.assert_allclose(frequencies(uniform("clamped", "free", 500))[:4], CANTILEVER**2, rtol=1e-6)


def test_given_pinned_ends_when_space_is_made_then_published_dimension():
    for count in (1, 2, 3, 6, 16):
        assert spline_space(1.0, count, "pinned", "pinned").size == count + 1


SMOOTH = Options(losses=0)  # local losses have tests of their own
SHAKER = """
name = "Cantilever on a shaker"
[beam]
length = 0.76
left = "clamped"
right = "free"
elements = 20
[stiffness]
guess = 12.0
intervals = 12
[mass]
value = 2.0
[viscous]
guess = 0.3
[kelvin_voigt]
guess = 1e-3
[tip_mass]
value = 0.1
[excitation.a]
kind = "base acceleration"
"""


def shaker_text(places, kind="velocity"):
    sensors = (
        f'[sensors.v{i}]\nat = {x:.10f}\nkind = "{kind}"\nrelative = true\n' for i, x in enumerate(places)
    )
    return SHAKER + "\n".join(sensors)


def stiffness(x):
    return 18.0 * (1.0 - 0.2 * x / 0.76) * (1 + 0.1 * np.cos(9 * x))


def density(x):
    return 2.0 * (1.0 - 0.15 * x / 0.76 + 0.05 * np.sin(6 * x))


@pytest.fixture(scope="module")
def shaken():
    """A swept-sine test of an independent model of the cantilever, nine vibrometer points, 1 % noise."""
    truth = HermiteBeam(0.76, stiffness, density, lambda x: 0.8 + 0 * x, lambda x: 2e-3 + 0 * x, 0.1)
    rate, seconds = 1000.0, 3.0
    t = np.arange(int(rate * seconds)) / rate
    sweep = 5 * np.sin(2 * np.pi * (2 * t + 198 * t**2 / (2 * seconds))) * np.minimum(1, t / 0.1)
    places = [truth.node(x)[1] for x in np.linspace(0.76 / 9, 0.76, 9)]
    _, velocity = truth.respond(truth.base_load, sweep, 1 / rate)
    clean = np.array([truth.row(x) @ velocity for x in places])
    rng = np.random.default_rng(5)
    noisy = clean + 0.01 * np.std(clean, axis=1, keepdims=True) * rng.standard_normal(clean.shape)
    record = Record.from_arrays(rate, {"a": sweep, **{f"v{i}": row for i, row in enumerate(noisy)}})
    return places, record, clean


def as_known(beam):
    """The shaken beam with its true properties."""
    beam = beam.with_profile("stiffness", shape=stiffness, free=False)
    return beam.with_profile("mass", shape=density, free=False)


def within(curve, truth):
    x, y = np.array(curve.x), np.array(curve.y)
    covered = (np.array(curve.lower) <= truth(x)) & (truth(x) <= np.array(curve.upper))
    return np.sqrt(np.mean((y / truth(x) - 1) ** 2)), covered.mean()


def test_given_true_properties_when_simulated_then_independent_model_agrees(shaken):
    places, record, clean = shaken
    beam = as_known(load(shaker_text(places)))
    for key, value in (("viscous", 0.8), ("kelvin_voigt", 2e-3)):
        beam = beam.with_profile(key, shape=value, free=False)
    simulated = simulate(beam, record, elements=32)
    for i, row in enumerate(clean):
        assert np.std(simulated[f"v{i}"] - row) < 1e-3 * np.std(row)


def test_given_shaker_test_with_noise_when_identified_then_stiffness_and_damping_within_2_percent(shaken):
    places, record, _ = shaken
    beam = load(shaker_text(places)).with_profile("mass", shape=density, free=False)
    result = identify(beam, [record], SMOOTH, SILENT)
    error, covered = within(result.curves["EI"], stiffness)
    assert result.converged
    assert error < 0.02
    assert covered > 0.85
    assert abs(result.parameters["c"].value / 0.8 - 1) < 0.02
    assert abs(result.parameters["cI"].value / 2e-3 - 1) < 0.02
    assert not result.undetermined


def test_given_weighed_beam_when_mass_and_tip_mass_are_unknown_too_then_all_within_3_percent(shaken):
    places, record, _ = shaken
    x = np.linspace(0, 0.76, 2001)
    beam = load(shaker_text(places)).with_profile("mass", shape=1.5, free=True, intervals=6)
    beam = replace(beam, tip_mass=Scalar(0.05, True, "kg"), total_mass=float(np.trapezoid(density(x), x)))
    result = identify(beam, [record], SMOOTH, SILENT)
    assert within(result.curves["EI"], stiffness)[0] < 0.03
    assert within(result.curves["rho"], density)[0] < 0.03
    assert abs(result.parameters["tip_mass"].value / 0.1 - 1) < 0.03
    assert abs(result.parameters["c"].value / 0.8 - 1) < 0.03
    assert not result.undetermined


def test_given_unweighed_beam_when_everything_is_unknown_then_the_common_factor_is_reported(shaken):
    places, record, _ = shaken
    beam = load(shaker_text(places[::3])).with_profile("mass", shape=1.9, free=True, intervals=0)
    beam = beam.with_profile("stiffness", shape=16.0, intervals=0)
    beam = replace(beam, tip_mass=Scalar(0.09, True, "kg"))
    result = identify(beam, [record.cut(0, 800)], SMOOTH, SILENT)
    assert any("common factor of EI, rho, c, cI, tip_mass" in text for text in result.undetermined)


def test_given_scan_point_by_point_when_identified_then_as_good_as_all_at_once(shaken):
    places, record, _ = shaken
    text = SHAKER + '[sensors.laser]\nat = "position"\nkind = "velocity"\nrelative = true\n'
    beam = load(text).with_profile("mass", shape=density, free=False)
    record = record.cut(0, 1200)
    scans = [
        Record.from_arrays(
            record.rate, {"a": record["a"], "laser": record[f"v{i}"]}, metadata={"position": places[i]}
        )
        for i in (1, 4, 8)
    ]
    result = identify(beam, scans, SMOOTH, SILENT)
    all_three = load(shaker_text(places)).with_profile("mass", shape=density, free=False)
    all_three = replace(all_three, sensors=tuple(all_three.sensors[i] for i in (1, 4, 8)))
    together = identify(all_three, [record], SMOOTH, SILENT)
    np.testing.assert_allclose(result.curves["EI"].y, together.curves["EI"].y, rtol=1e-3)
    with pytest.raises(DataError, match="position"):
        identify(beam, [replace(scans[0], metadata={})], SMOOTH, SILENT)


@pytest.mark.parametrize("kind", ["displacement", "velocity", "acceleration"])
def test_given_any_sensor_when_unknowns_move_then_sensitivities_match_differences(kind, shaken):
    places, record, _ = shaken
    beam = load(shaker_text(places[2::3], kind)).with_profile("mass", shape=1.9, free=True, intervals=3)
    beam = replace(beam, tip_mass=Scalar(0.09, True, "kg"), load=Scalar(0.4, True))
    unknowns = layout(beam)
    system = BeamSystem(beam, unknowns)
    observation = observe(beam, record.cut(0, 300))
    theta = unknowns.start + 0.05 * np.random.default_rng(1).standard_normal(unknowns.size)
    _, slopes = observation.predict(system, system.state(theta), theta)
    for p in range(unknowns.size):
        step = np.zeros(unknowns.size)
        step[p] = 1e-4
        ahead, behind = (
            observation.predict(system, system.state(theta + s, False), theta + s)[0] for s in (step, -step)
        )
        difference = (ahead - behind) / 2e-4
        allowed = 1e-4 * np.max(np.abs(difference)) + 1e-6 * np.max(np.abs(slopes))  # rounding of the modes
        assert np.max(np.abs(slopes[p] - difference)) < allowed


def test_given_absolute_sensors_when_base_moves_then_base_is_taken_off(shaken):
    places, record, _ = shaken
    t = record.times
    base = 1e-3 * np.sin(2 * np.pi * (2 * t + 20 * t**2))
    text = shaker_text(places[4:5], "displacement").replace("base acceleration", "base displacement")
    relative = simulate(load(text), record.with_channels(a=base))
    absolute = simulate(load(text.replace("relative = true", "")), record.with_channels(a=base))
    np.testing.assert_allclose(absolute["v0"], relative["v0"] + base, atol=1e-12)


def test_given_free_decay_when_start_is_estimated_then_damping_and_stiffness_found(rng):
    text = """
    name = "decay"
    [beam]
    length = 1.0
    left = "clamped"
    right = "free"
    [stiffness]
    guess = 1.3
    [mass]
    value = 1.0
    [viscous]
    guess = 0.1
    [start]
    motion = "free"
    modes = 3
    [excitation.f]
    kind = "force"
    at = 0.6
    [sensors]
    w1 = { at = 0.5 }
    w2 = { at = 1.0, offset = true }
    """
    known = load(text).with_profile("stiffness", shape=1.0, free=False)
    known = known.with_profile("viscous", shape=0.2, free=False)
    t = np.arange(3000) * 0.01
    blank = Record.from_arrays(100.0, {"f": np.exp(-(((t - 0.3) / 0.1) ** 2))})
    record = simulate(replace(known, start="rest"), blank).cut(100, 3000)
    noise = 0.01 * np.std(record["w2"])
    record = record.with_channels(
        w1=record["w1"] + noise * rng.standard_normal(len(record)),
        w2=record["w2"] + 0.3 + noise * rng.standard_normal(len(record)),
    )
    result = identify(load(text), [record], SMOOTH, SILENT)
    assert result.converged
    assert abs(result.parameters["EI"].value - 1.0) < 0.002
    assert abs(result.parameters["c"].value - 0.2) < 0.004
    assert result.parameters["EI"].stderr < 0.001


def test_given_measured_steel_cantilever_when_fitted_then_five_resonances_and_modulus():
    text = (files("resources") / "beams" / "steel-cantilever.toml").read_text()
    result = identify(load(text), [], SMOOTH, SILENT)
    found = np.array(result.extra["frequencies_hz"][:5])
    measured = np.array(result.extra["measured_hz"])
    assert np.max(np.abs(found / measured - 1)) < 0.015
    modulus = result.parameters["E"]
    # Below the handbook's 200 GPa: one number for clamp, sensor and beam together (see the method's page).
    assert 150e9 < modulus.lower < modulus.upper < 220e9
    assert (
        modulus.upper - modulus.lower > 1e9
    )  # the misfit of the model is in the interval, not only the reading


def test_given_published_example_when_flat_guess_then_truth_within_5e_4():
    result = identify(banks_beam(), [banks_record(np.arange(11) * 0.1)], SMOOTH, SILENT)
    assert result.converged
    assert banks_error(result) < 5e-4


def test_given_published_scheme_when_flat_guess_then_it_stays_in_a_local_minimum():
    record = banks_record(np.arange(11) * 0.1)
    flat = identify(banks_beam(), [record], Options(fit="published", elements=6, intervals=3), SILENT)
    assert banks_error(flat) > 0.03
    near = banks_beam().with_profile("stiffness", shape=banks_stiffness)
    close = identify(near, [record], Options(fit="published", elements=6, intervals=3), SILENT)
    assert banks_error(close) < 0.0025


def test_given_noise_of_1_percent_when_identified_then_within_001_and_bands_cover():
    errors, covered = [], []
    for seed in range(5):
        result = identify(banks_beam(), [banks_record(np.arange(401) * 0.005, 0.01, seed)], SMOOTH, SILENT)
        errors.append(banks_error(result))
        covered.append(banks_coverage(result))
    assert np.median(errors) < 0.01
    assert np.mean(covered) > 0.9


def test_given_several_meshes_when_studied_then_distance_shrinks():
    record = banks_record(np.arange(101) * 0.02, 0.001)
    rows = convergence(banks_beam(), [record], elements=(4, 16), intervals=(2, 8))
    assert [(r.elements, r.intervals) for r in rows] == [(4, 2), (4, 8), (16, 2), (16, 8)]
    assert rows[0].distance > 3 * rows[1].distance
    assert rows[-1].distance == 0.0


def test_given_unknown_load_when_identified_then_load_found():
    beam = replace(banks_beam(), load=Scalar(7.0, True, "N/m"))
    result = identify(beam, [banks_record(np.arange(401) * 0.005, 0.001)], SMOOTH, SILENT)
    assert result.parameters["load"].covers(10.0)
    assert abs(result.parameters["load"].value - 10.0) < 0.1


def test_given_gaps_when_identified_then_lost_samples_do_not_count():
    record = banks_record(np.arange(201) * 0.01, 0.001)
    spoiled = record["u4"].copy()
    spoiled[50:90] = 1e3
    channel = replace(record.channels["u4"], data=spoiled, gaps=((50, 90),))
    result = identify(
        banks_beam(), [replace(record, channels={**record.channels, "u4": channel})], SMOOTH, SILENT
    )
    assert banks_error(result) < 5e-3


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("guess = 0.15", "guess = -1"), "positive"),
        (("guess = 0.15", "value = 0.15"), "nothing is to be found"),
        (('left = "pinned"', 'left = "glued"'), "glued"),
        (("at = 0.9", "at = 1.9"), "outside the beam"),
        (("[load]", "[loads]"), "loads"),
        (("length = 1.0", "length = 'long'"), "number for 'length'"),
    ],
)
def test_given_wrong_description_when_read_then_one_clear_sentence(change, complaint):
    with pytest.raises(ModelError, match=complaint):
        load(BANKS.replace(*change))


def test_given_a_record_without_sensors_when_identified_then_it_says_which_are_missing():
    with pytest.raises(DataError, match="u1"):
        identify(banks_beam(), [Record.from_arrays(10, {"x": np.zeros(5)})], SMOOTH, SILENT)


def test_given_result_when_saved_then_it_reads_back_equal():
    beam: Beam = banks_beam()
    result = identify(beam, [banks_record(np.arange(11) * 0.1)], SMOOTH, SILENT)
    assert type(result).from_json(result.to_json()) == result
