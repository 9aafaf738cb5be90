"""Beams as they are built: elastic supports, tip mass, shear, uncertain length and mass, local losses.

Truth: the transfer matrix of a uniform beam (exact in x), and cubic Hermite elements.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import expm
from scipy.optimize import brentq

from analysis import SILENT, Record
from analysis.base.errors import ModelError
from analysis.estimate.functions.beam import Options, identify, load, local_loss
from analysis.estimate.functions.beam.observation import observe
from analysis.estimate.functions.beam.system import BeamSystem
from analysis.estimate.functions.beam.unknowns import UnknownProperties, layout
from tests.hermite_beam import HermiteBeam

Array = NDArray[np.float64]

UNIFORM = """
name = "Uniform beam"
[beam]
length = {length}
left = "{left}"
right = "free"
elements = 20
[stiffness]
guess = 1.4
intervals = {intervals}
[mass]
value = 1.0
"""


def text(more: str = "", left: str = "clamped", length: float = 1.0, intervals: int = 0) -> str:
    return UNIFORM.format(left=left, length=length, intervals=intervals) + more


def boundary(omega: float, root: float, sway: float, tip: float, gyration: float, shear: float) -> float:
    """Vanishes at a natural frequency of a uniform beam (EI, rho and L = 1) on springs with a free tip.

    States w, psi, M, Q along x; root: M = root psi and Q = sway w; Timoshenko's beam where gyration is not 0.
    """
    along = np.array(
        [
            [0.0, 1.0, 0.0, gyration * shear],
            [0.0, 0.0, 1.0, 0.0],
            [0.0, -(omega**2) * gyration, 0.0, -1.0],
            [-(omega**2), 0.0, 0.0, 0.0],
        ]
    )
    ends = expm(along) @ np.array([[0.0, 1.0 / sway], [1.0 / root, 0.0], [1.0, 0.0], [0.0, 1.0]])
    return float(np.linalg.det(np.array([ends[2], ends[3] - tip * omega**2 * ends[0]])))


def truth(
    count: int,
    root: float = np.inf,
    sway: float = np.inf,
    tip: float = 0.0,
    gyration: float = 0.0,
    shear: float = 0.0,
) -> Array:
    """The lowest natural frequencies, Hz."""
    grid = np.linspace(0.3, 18.0, 280) ** 2
    values = [boundary(w, root, sway, tip, gyration, shear) for w in grid]
    found = [
        brentq(boundary, a, b, args=(root, sway, tip, gyration, shear))
        for a, b, u, v in zip(grid, grid[1:], values, values[1:], strict=False)
        if u * v < 0
    ]
    return np.array(found[:count]) / (2 * np.pi)


def ours(description: str, count: int) -> Array:
    beam = load(description).with_profile("stiffness", shape=1.0)
    system = BeamSystem(beam, UnknownProperties(beam, (), np.zeros(0)))
    return system.frequencies(system.state(np.zeros(0), derivatives=False))[0][:count]


def springs(rotation: str, translation: str = "") -> str:
    more = f"translation = {{ {translation} }}\n" if translation else ""
    return f"[supports.left]\nrotation = {{ {rotation} }}\n{more}"


def test_given_springs_and_a_tip_mass_then_frequencies_are_those_of_the_transfer_matrix() -> None:
    held = text(springs("value = 3.0") + "[tip_mass]\nvalue = 0.3\n", left="elastic")
    np.testing.assert_allclose(ours(held, 3), truth(3, root=3.0, tip=0.3), rtol=1e-7)
    soft = text(springs("value = 50.0", "value = 200.0"), left="elastic")
    np.testing.assert_allclose(ours(soft, 3), truth(3, root=50.0, sway=200.0), rtol=1e-7)


def test_given_a_stout_beam_then_shear_and_rotary_inertia_are_counted() -> None:
    exact = truth(3, gyration=0.1**2 / 12, shear=3.1)
    counted = ours(text("[section]\nthickness = 0.1\nshear = 3.1\n"), 3)
    assert np.all(np.abs(ours(text(), 3) / exact - 1) > [0.007, 0.05, 0.1])
    assert np.all(np.abs(counted / exact - 1) < [1e-4, 1e-3, 3e-3])


def listed(hz: Array, error: float = 0.003) -> str:
    return f"[frequencies]\nhz = {[float(v) for v in hz]}\nerror = {error}\n"


def test_given_a_stout_beam_without_shear_then_it_says_what_is_left_out() -> None:
    hz = listed(truth(3, gyration=0.1**2 / 12, shear=3.1))
    left_out = identify(load(text("[section]\nthickness = 0.1\n" + hz)), [], Options(), SILENT)
    assert left_out.verdict != "fits" and any("Shear" in words for words in left_out.warnings)
    counted = identify(load(text("[section]\nthickness = 0.1\nshear = 3.1\n" + hz)), [], Options(), SILENT)
    assert counted.verdict == "fits"
    assert counted.parameters["EI"].value == pytest.approx(1.0, rel=0.005)


def test_given_a_soft_clamp_as_unknown_then_it_is_found_and_a_rigid_one_is_not_said_to_fit() -> None:
    hz = listed(truth(6, root=20.0) * (1 + 0.001 * np.random.default_rng(4).standard_normal(6)), 0.001)
    found = identify(load(text(springs("guess = 5.0") + hz, left="elastic")), [], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    assert found.parameters["EI"].covers(1.0)
    assert found.parameters["left rotation"].covers(20.0)
    assert found.parameters["left rotation"].stderr < 2.0
    assert identify(load(text(hz)), [], Options(), SILENT).verdict in ("close", "misses")


def test_given_a_spring_and_a_tip_mass_that_can_change_roles_then_the_other_beam_is_named() -> None:
    hz = listed(truth(6, root=20.0, tip=0.2), 0.001)
    np.testing.assert_allclose(truth(6, root=5.0, tip=0.05), truth(6, root=20.0, tip=0.2), rtol=1e-9)
    more = springs("guess = 15.0") + "[tip_mass]\nguess = 0.15\n" + hz
    found = identify(load(text(more, left="elastic")), [], Options(), SILENT)
    assert found.verdict == "cannot tell" and "Another beam" in found.reasons[0]


def test_given_frequencies_alone_then_length_and_mass_are_said_to_be_unchecked_or_their_error_counts() -> (
    None
):
    hz = listed(truth(4))
    exact = identify(load(text(hz, length=1.05)), [], Options(), SILENT)
    assert any("each per cent of it moves EI by +4 %" in words for words in exact.warnings)
    assert any("stated mass: each per cent of it moves EI by +1 %" in words for words in exact.warnings)
    described = text(hz, length=1.05).replace("length = 1.05", "length = 1.05\nlength_error = 0.03")
    found = identify(
        load(described.replace("value = 1.0", "value = 1.0\nerror = 0.01")), [], Options(), SILENT
    )
    stiffness = found.parameters["EI"]
    assert stiffness.covers(1.0)
    assert np.log(stiffness.upper / stiffness.value) / 1.96 == pytest.approx(np.hypot(0.12, 0.01), rel=0.02)
    assert not any("cannot check" in words for words in found.warnings)


def test_given_one_frequency_then_nothing_is_left_to_judge() -> None:
    found = identify(load(text(listed(truth(2)[1:]))), [], Options(), SILENT)
    assert found.verdict == "cannot tell"


def test_given_two_frequencies_of_higher_modes_then_their_numbers_are_found() -> None:
    found = identify(load(text(listed(truth(3)[1:]))), [], Options(), SILENT)
    assert found.extra["measured_modes"] == [2, 3]
    assert found.parameters["EI"].value == pytest.approx(1.0, rel=0.01)


PLACES = np.linspace(0.1, 1.0, 10)


def shaped(stiffness: object, noise: float, seed: int = 0) -> str:
    """Five frequencies and mode shapes at ten places of an independent beam."""
    beam = HermiteBeam(1.0, stiffness, lambda x: 1 + 0 * x, lambda x: 0 * x, lambda x: 0 * x, elements=100)
    rng = np.random.default_rng(seed)
    rows = np.array([beam.row(x) for x in PLACES])[:, :5].T
    rows = rows / np.max(np.abs(rows), axis=1, keepdims=True) * np.array([[1.0], [-3.0], [2.0], [1.0], [5.0]])
    rows = rows + noise * np.max(np.abs(rows), axis=1, keepdims=True) * rng.standard_normal(rows.shape)
    hz = np.sqrt(beam.squared[:5]) / (2 * np.pi) * (1 + 0.001 * rng.standard_normal(5))
    places = [float(x) for x in PLACES]
    values = [[float(v) for v in row] for row in rows]
    return listed(hz, 0.001) + f"[shapes]\nat = {places}\nvalues = {values}\nerror = {noise}\n"


def tapered(x: Array) -> Array:
    return np.asarray((1.0 - 0.6 * x) ** 3 + 0.2)


def test_given_mode_shapes_then_frequencies_tell_a_curve_and_a_wrong_support_shows() -> None:
    data = shaped(tapered, 0.005)
    found = identify(load(text(data, intervals=8)), [], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    curve = found.curves["EI"]
    x = np.array(curve.x)
    covered = (np.array(curve.lower) <= tapered(x)) & (tapered(x) <= np.array(curve.upper))
    assert covered.mean() > 0.9
    inner = x < 0.7
    assert np.sqrt(np.mean((np.array(curve.y)[inner] / tapered(x)[inner] - 1) ** 2)) < 0.05
    wrong = identify(load(text(data, left="pinned", intervals=8)), [], Options(stages=5, losses=0), SILENT)
    assert wrong.verdict in ("misses", "cannot tell")


def test_given_every_unknown_when_it_moves_then_sensitivities_match_differences() -> None:
    more = (
        springs("guess = 20.0", "guess = 300.0")
        + "[section]\nthickness = 0.05\nshear = 3.1\n[viscous]\nguess = 0.3\n[kelvin_voigt]\nguess = 1e-3\n"
        + '[load]\nguess = 0.5\n[excitation.f]\nkind = "force"\nat = 0.6\n'
        + '[sensors]\nw1 = { at = 0.3, kind = "acceleration" }\nw2 = { at = 1.0 }\n'
    )
    described = text(more, left="elastic", intervals=4).replace("left =", "length_error = 0.01\nleft =", 1)
    beam = load(described.replace("value = 1.0\n", "value = 1.0\nerror = 0.01\n"))
    plain = layout(beam)
    unknowns = plain.with_losses(plain.start, [local_loss.unknowns(0.4, 0.1, 0.3)])
    system = BeamSystem(beam, unknowns)
    t = np.arange(150) * 0.02
    force = Record.from_arrays(50.0, {"f": np.exp(-(((t - 0.3) / 0.1) ** 2)), "w1": 0 * t, "w2": 0 * t})
    observation = observe(beam, force)
    theta = unknowns.start + 0.02
    _, slopes = observation.predict(system, system.state(theta), theta)
    names = [b.key for b in unknowns.blocks for _ in range(b.size)]
    for p, name in enumerate(names):
        step = np.zeros(unknowns.size)
        step[p] = 1e-4
        ahead, behind = (
            observation.predict(system, system.state(theta + s, False), theta + s)[0] for s in (step, -step)
        )
        difference = (ahead - behind) / 2e-4
        allowed = 1e-3 * np.max(np.abs(difference)) + 1e-5 * np.max(np.abs(slopes))
        assert np.max(np.abs(slopes[p] - difference)) < allowed, name


def cracked(x: Array) -> Array:
    return np.asarray(np.where(np.abs(x - 0.4) <= 0.025, 0.7, 1.0))


SENSORS = (0.3, 0.65, 0.95)


def swept(stiffness: object, seed: int, sensors: tuple[float, ...] = SENSORS, drive: float = 0.6) -> Record:
    """Velocity at three places of an independent beam under a swept force, 1 % noise."""

    def none(x: Array, value: float = 0.2) -> Array:
        return np.full(np.shape(x), value)

    beam = HermiteBeam(1.0, stiffness, lambda x: none(x, 1.0), none, lambda x: none(x, 2e-4), modes=20)
    t = np.arange(1200) / 200.0
    force = np.sin(2 * np.pi * (0.2 * t + 59.8 * t**2 / 12.0)) * np.minimum(1.0, t / 0.3)
    _, velocity = beam.respond(beam.row(drive), force, 1 / 200.0)
    rng = np.random.default_rng(seed)
    rows = {f"w{i}": beam.row(x) @ velocity for i, x in enumerate(sensors)}
    noisy = {n: r + 0.01 * r.std() * rng.standard_normal(len(t)) for n, r in rows.items()}
    return Record.from_arrays(200.0, {"f": force, **noisy})


def sensed(sensors: tuple[float, ...] = SENSORS, drive: float = 0.6) -> str:
    places = "".join(f'w{i} = {{ at = {x}, kind = "velocity" }}\n' for i, x in enumerate(sensors))
    driven = f'[excitation.f]\nkind = "force"\nat = {drive}\n'
    return f"[viscous]\nguess = 0.1\n[kelvin_voigt]\nguess = 1e-4\n{driven}[sensors]\n{places}"


def test_given_a_crack_and_three_sensors_then_its_place_and_depth_are_found() -> None:
    found = identify(load(text(sensed(), intervals=10)), [swept(cracked, 1)], Options(losses=1), SILENT)
    assert found.verdict == "fits", found.reasons
    assert found.parameters["loss1_place"].value == pytest.approx(0.4, abs=0.03)
    assert found.parameters["loss1_share"].value == pytest.approx(0.3, abs=0.06)
    share = found.parameters["loss1_share"]
    assert abs(share.value - 0.3) < 3 * share.stderr < 0.06
    assert any("at one place" in words for words in found.warnings)


def test_given_a_crack_beside_which_the_smooth_curve_dips_deeper_then_it_is_found_where_it_is() -> None:
    sensors, drive, place = (0.28, 0.37, 0.79), 0.49, 0.6516
    record = swept(lambda x: np.where(np.abs(x - place) <= 0.025, 0.7, 1.0), 3, sensors, drive)
    found = identify(load(text(sensed(sensors, drive), intervals=10)), [record], Options(), SILENT)
    assert found.verdict == "fits", found.reasons
    assert found.parameters["loss1_place"].value == pytest.approx(place, abs=0.01)
    share = found.parameters["loss1_share"]
    assert abs(share.value - 0.3) < 3 * share.stderr < 0.05
    assert "loss2_place" not in found.parameters


def test_given_no_crack_then_none_is_found_and_a_wrong_mass_is_called() -> None:
    record = swept(lambda x: 1.0 + 0 * x, 2)
    found = identify(load(text(sensed(), intervals=6)), [record], Options(), SILENT)
    assert found.verdict == "fits" and not any("loss" in name for name in found.parameters)
    assert not found.warnings
    heavy = load(text(sensed()).replace("value = 1.0", "value = 1.03"))
    assert identify(heavy, [record], Options(), SILENT).verdict in ("close", "misses")


@pytest.mark.parametrize(
    ("more", "left", "complaint"),
    [
        ("", "elastic", "elastic left end"),
        (springs("value = 1.0"), "clamped", "elastic left end"),
        ("[supports.left]\nswing = { value = 1.0 }\n", "elastic", "swing"),
        (
            "[frequencies]\nhz = [1.0]\n[shapes]\nat = [0.1, 0.2]\nvalues = [[1.0]]\n",
            "clamped",
            "as many numbers",
        ),
        (
            "[frequencies]\nhz = [1.0]\n[shapes]\nat = [0.1, 2.0]\nvalues = [[1.0, 2.0]]\n",
            "clamped",
            "outside",
        ),
    ],
)
def test_given_a_wrong_description_then_one_sentence_says_so(more: str, left: str, complaint: str) -> None:
    with pytest.raises(ModelError, match=complaint):
        load(text(more, left=left))


def test_given_a_known_mass_with_an_error_then_a_guess_cannot_have_one() -> None:
    with pytest.raises(ModelError, match="belongs to a value"):
        load(text().replace("[mass]\nvalue = 1.0", "[mass]\nguess = 1.0\nerror = 0.1"))
