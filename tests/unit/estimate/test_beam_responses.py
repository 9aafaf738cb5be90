"""Frequency responses as data of a beam. Truth: cubic Hermite elements."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from analysis import SILENT
from analysis.base.errors import ModelError
from analysis.estimate.functions.beam import Options, identify, load
from analysis.estimate.functions.beam.frequency_responses import predicted_response
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import UnknownProperties, layout
from tests.hermite_beam import HermiteBeam

Array = NDArray[np.float64]
HZ = np.arange(0.2, 40.0, 0.4)  # through five modes

HEAD = """
name = "Cantilever"
[beam]
length = 1.0
left = "clamped"
right = "free"
elements = 20
{beam}
[stiffness]
guess = 1.4
intervals = {intervals}
[mass]
value = 1.0
[viscous]
guess = 0.1
"""
FORCE = '{ kind = "force", at = 0.6 }'
BASE = '{ kind = "base acceleration" }'


def hermite(stiffness: object) -> HermiteBeam:
    def flat(value: float) -> object:
        return lambda x: np.full(np.shape(x), value)

    return HermiteBeam(1.0, stiffness, flat(1.0), flat(0.3), flat(0.0), elements=100, modes=25)


def uniform(x: Array) -> Array:
    return np.ones(np.shape(x))


def exact(beam: HermiteBeam, at: float, load_row: Array, order: int) -> NDArray[np.complex128]:
    """The response by the solution of the equations at every frequency."""
    s = 2j * np.pi * HZ
    square = np.diag(beam.squared)
    solved = [np.linalg.solve(square + z * beam.damping + z**2 * np.eye(len(square)), load_row) for z in s]
    return np.asarray(beam.row(at) @ np.array(solved).T * s**order)


def table(at: float, kind: str, drive: str, values: NDArray[np.complex128], error: float = 0.02) -> str:
    return (
        f'[[responses]]\nsensor = {{ at = {at}, kind = "{kind}" }}\ndrive = {drive}\nerror = {error}\n'
        f"hz = {HZ.tolist()}\nreal = {values.real.tolist()}\nimaginary = {values.imag.tolist()}\n"
    )


def noisy(values: NDArray[np.complex128], seed: int) -> NDArray[np.complex128]:
    rng = np.random.default_rng(seed)
    size = np.hypot(np.abs(values), 0.1 * np.median(np.abs(values)))
    scatter = rng.standard_normal((2, len(values)))
    return np.asarray(values + 0.02 * size * (scatter[0] + 1j * scatter[1]))


@pytest.mark.parametrize(
    ("kind", "drive", "order"),
    [("acceleration", FORCE, 2), ("displacement", FORCE, 0), ("acceleration", BASE, 2)],
)
def test_given_the_true_beam_then_its_response_is_that_of_the_elements(
    kind: str, drive: str, order: int
) -> None:
    """On a shaker the sensor sees the base as well: one more than the relative motion."""
    beam = hermite(uniform)
    row = beam.base_load if drive == BASE else beam.row(0.6)
    values = exact(beam, 0.9, row, order)
    stated = values + 1.0 if drive == BASE else values
    described = load(HEAD.format(beam="", intervals=0) + table(0.9, kind, drive, stated))
    true = described.with_profile("stiffness", shape=1.0).with_profile("viscous", shape=0.3)
    unknowns = UnknownProperties(true, (), np.zeros(0))
    system = BeamSystem(true, unknowns)
    state = system.state(unknowns.start, derivatives=False)
    found, _ = predicted_response(system, state, unknowns.start, true.responses[0])
    assert np.max(np.abs(found - stated)) < 1e-3 * np.max(np.abs(values))


def test_given_every_unknown_when_it_moves_then_the_response_follows() -> None:
    for drive in (FORCE, BASE):
        flat = np.ones(len(HZ), dtype=np.complex128)
        text = HEAD.format(beam="length_error = 0.01", intervals=4) + "[tip_mass]\nguess = 0.1\n"
        beam = load(text + table(0.9, "acceleration", drive, flat))
        unknowns = layout(beam)
        system = BeamSystem(beam, unknowns)
        theta = unknowns.start + 0.02
        _, slopes = predicted_response(system, system.state(theta), theta, beam.responses[0])
        for p in range(unknowns.size):
            step = np.zeros(unknowns.size)
            step[p] = 1e-5
            ahead, behind = (
                predicted_response(system, system.state(theta + s, False), theta + s, beam.responses[0])[0]
                for s in (step, -step)
            )
            difference = (ahead - behind) / 2e-5
            assert np.max(np.abs(slopes[p] - difference)) < 1e-3 * np.max(np.abs(slopes)), p


def test_given_responses_with_noise_then_stiffness_and_damping_are_found() -> None:
    beam = hermite(uniform)
    tables = [
        table(x, "acceleration", FORCE, noisy(exact(beam, x, beam.row(0.6), 2), i))
        for i, x in enumerate((0.3, 0.9))
    ]
    found = identify(load(HEAD.format(beam="", intervals=0) + "".join(tables)), [], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    for name, true in (("EI", 1.0), ("c", 0.3)):
        assert found.parameters[name].covers(true), name
        assert found.parameters[name].stderr < 0.02 * true
    assert any("responses are met" in words for words in found.reasons)


def test_given_a_beam_that_is_stiffer_at_its_root_then_one_number_misses_and_a_curve_fits() -> None:
    def tapered(x: Array) -> Array:
        return np.asarray(1.4 - 0.6 * x)

    beam = hermite(tapered)
    places = (0.3, 0.6, 0.9)
    tables = "".join(
        table(x, "acceleration", FORCE, noisy(exact(beam, x, beam.row(0.6), 2), i))
        for i, x in enumerate(places)
    )
    single = identify(load(HEAD.format(beam="", intervals=0) + tables), [], Options(), SILENT)
    assert single.verdict in ("misses", "close"), single.reasons
    assert any("misses the measured frequency responses" in words for words in single.reasons)
    found = identify(load(HEAD.format(beam="", intervals=6) + tables), [], Options(losses=0), SILENT)
    assert found.verdict == "fits", found.reasons
    curve = found.curves["EI"]
    x, low, high = (np.array(row) for row in (curve.x, curve.lower, curve.upper))
    inside = (tapered(x) >= low) & (tapered(x) <= high)
    assert np.mean(inside) > 0.9


@pytest.mark.parametrize(
    ("words", "old", "new"),
    [
        ("as many numbers", "hz = [", "hz = [0.1, "),
        ("kind is force", 'kind = "force", ', ""),
        ("lies outside the beam", "at = 0.3", "at = 3.0"),
        ("does not know 'sensors'", "sensor =", "sensors ="),
        ("must be finite", "real = [1.0", "real = [nan"),
    ],
)
def test_given_a_table_that_is_wrong_then_a_sentence_says_what(words: str, old: str, new: str) -> None:
    right = HEAD.format(beam="", intervals=0) + table(0.3, "velocity", FORCE, np.ones(len(HZ)) + 0j)
    assert old in right
    with pytest.raises(ModelError, match=words):
        load(right.replace(old, new, 1))


def test_given_a_shaker_and_another_kind_of_sensor_then_the_base_has_to_be_taken_off() -> None:
    values = np.ones(len(HZ)) + 0j
    with pytest.raises(ModelError, match="relative = true"):
        load(HEAD.format(beam="", intervals=0) + table(0.3, "velocity", BASE, values))
