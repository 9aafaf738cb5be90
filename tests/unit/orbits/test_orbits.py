"""Close returns and the periodic orbits behind them, against Newton's method on the equations."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analysis.base.errors import DataError
from analysis.orbits.forced import forced_orbits
from analysis.orbits.orbit import Orbits, PeriodicOrbit
from analysis.reconstruct.embedding import delay_coordinates, singular_coordinates
from tests.chaotic import DUFFING, DUFFING_PERIOD, duffing

# Points at drive phase 0 and leading multipliers of the Duffing system (c 0.2, a 27, omega 1.33).
PERIOD_1 = {(4.228545, -0.631450): -1.8774, (4.743512, 0.273050): -1.8774, (4.480826, 1.207851): 4.8954}
PERIOD_2 = {(4.182505, -1.549941): -3.8572, (4.625123, 2.017348): -3.8572}


@pytest.fixture(scope="module")
def record() -> np.ndarray:
    return duffing(200_000)


@pytest.fixture(scope="module")
def found(record: np.ndarray) -> Orbits:
    return forced_orbits(record, 100.0, multiples=range(1, 11))


def _rhs(t: float, y: np.ndarray) -> list[float]:
    c, beta, gamma, a, omega = DUFFING
    x, v, p, q, r, s = y
    k = -beta - 3 * gamma * x * x
    return [v, -c * v - beta * x - gamma * x**3 + a * np.cos(omega * t), q, k * p - c * q, s, k * r - c * s]


def true_orbit(point: np.ndarray, time: float, multiple: int) -> np.ndarray:
    """The periodic point near ``point`` at drive time ``time``, by Newton's method."""
    x = point.copy()
    for _ in range(12):
        span = (time, time + multiple * DUFFING_PERIOD)
        end = solve_ivp(_rhs, span, [*x, 1, 0, 0, 1], method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
        jacobian = np.array([[end[2], end[4]], [end[3], end[5]]])
        step = np.linalg.solve(jacobian - np.eye(2), x - end[:2])
        x = x + step
        if np.max(np.abs(step)) < 1e-10:
            break
    return x


def strobed(points: np.ndarray, orbit: PeriodicOrbit, period: int) -> np.ndarray:
    """Points of the segment at drive phase 0, [n, multiple]."""
    first = -(-orbit.start // period) * period
    places = first + period * np.arange(orbit.multiple)
    places = np.where(places > orbit.start + orbit.period, places - orbit.period, places).astype(int)
    return points[:, places]


@pytest.mark.parametrize(("multiple", "table"), [(1, PERIOD_1), (2, PERIOD_2)])
def test_given_a_duffing_record_then_every_known_orbit_is_found_once(
    record: np.ndarray, found: Orbits, multiple: int, table: dict[tuple[float, float], float]
) -> None:
    orbits = found.of_multiple(multiple)
    assert len(orbits) == len(table)
    for point, multiplier in table.items():
        apart = [
            np.min(
                np.linalg.norm((strobed(record, o, 100) - np.array(point)[:, None]).T / found.scale, axis=1)
            )
            for o in orbits
        ]
        nearest = orbits[int(np.argmin(apart))]
        assert min(apart) < 0.005
        assert nearest.count > 3
        assert nearest.multipliers[0].real == pytest.approx(multiplier, rel=0.06)
        product = np.prod(nearest.multipliers).real
        assert product == pytest.approx(np.exp(-DUFFING[0] * multiple * DUFFING_PERIOD), rel=0.02)


def test_given_a_duffing_record_then_all_periods_to_ten_and_many_of_period_three_are_found(
    found: Orbits,
) -> None:
    assert {o.multiple for o in found} == set(range(1, 11))
    assert len(found.of_multiple(3)) >= 7
    assert len(found.of_multiple(4)) >= 5
    assert found.epsilon == 0.005
    assert all(o.closure <= 0.005 for o in found)


def test_given_extracted_orbits_then_the_bound_of_chapter_five_holds_for_most(
    record: np.ndarray, found: Orbits
) -> None:
    short = [o for o in found if o.multiple <= 4]
    inside = []
    for orbit in short:
        point = record[:, orbit.start]
        truth = true_orbit(point, orbit.start / 100 * DUFFING_PERIOD, orbit.multiple)
        inside.append(np.sqrt(np.mean(((truth - point) / found.scale) ** 2)) <= orbit.error_bound)
    assert len(short) > 12
    assert np.mean(inside) >= 0.75


def test_given_distinct_orbits_then_no_two_lead_to_the_same_true_orbit(
    record: np.ndarray, found: Orbits
) -> None:
    truths = []
    for orbit in found.of_multiple(3):
        start = -(-orbit.start // 100) * 100
        x = true_orbit(record[:, start], 0.0, 3)
        times = DUFFING_PERIOD * np.arange(3)
        path = solve_ivp(_rhs, (0, times[-1]), [*x, 1, 0, 0, 1], t_eval=times, rtol=1e-10, atol=1e-10).y[:2]
        truths.append(path[:, np.argmin(path[0])])  # the same point whatever the cyclic shift
    distances = [np.linalg.norm(a - b) for n, a in enumerate(truths) for b in truths[:n]]
    assert min(distances) > 1e-3


def test_given_a_period_between_samples_then_the_same_orbits_are_found() -> None:
    orbits = forced_orbits(duffing(100_000, 61.8034), 61.8034, multiples=range(1, 5))
    assert len(orbits.of_multiple(1)) == 3
    assert len(orbits.of_multiple(2)) == 2
    leading = sorted(o.multipliers[0].real for o in orbits.of_multiple(1))
    assert leading == pytest.approx([-1.8774, -1.8774, 4.8954], rel=0.08)


@pytest.mark.parametrize("space", ["delay", "singular"])
def test_given_one_channel_then_its_embedding_gives_the_same_orbits_without_spurious_multipliers(
    record: np.ndarray, space: str
) -> None:
    if space == "delay":
        points = delay_coordinates(record[0], 4, 6)
        scale = np.ptp(points[0])
    else:
        points = singular_coordinates(record[0], 20, 3).coordinates
        scale = np.ptp(points[0])
    orbits = forced_orbits(points, 100.0, multiples=range(1, 4), scale=np.array([scale]))
    assert [len(orbits.of_multiple(k)) for k in (1, 2)] == [3, 2]
    for orbit in orbits.of_multiple(1):
        assert len(orbit.multipliers) == 2
    leading = sorted(o.multipliers[0].real for o in orbits.of_multiple(1))
    assert leading == pytest.approx([-1.8774, -1.8774, 4.8954], rel=0.08)


def test_given_noise_then_closure_is_judged_beyond_it_and_the_orbits_stay() -> None:
    rng = np.random.default_rng(2)
    clean = duffing(100_000)
    noisy = clean + 0.02 * clean.std(axis=1, keepdims=True) * rng.standard_normal(clean.shape)
    orbits = forced_orbits(noisy, 100.0, multiples=range(1, 7))
    assert orbits.noise == pytest.approx(0.02 * clean.std(axis=1), rel=0.05)
    assert len(orbits.of_multiple(1)) == 3
    for orbit in orbits:
        truly = clean[:, orbit.start] - clean[:, orbit.start + int(orbit.period)]
        assert np.sqrt(np.mean((truly / orbits.scale) ** 2)) < 0.02
        assert orbit.closure_bound > orbit.closure


def test_given_velocity_alone_then_a_segment_that_ends_in_the_other_well_is_rejected() -> None:
    t = np.arange(12_000) / 40  # 40 samples a period
    hops = [60.5, 130.5, 210.5]
    v = 0.2 * np.sin(2 * np.pi * t) * (1 + 0.2 * np.sin(0.3 * t))
    v += sum((-1) ** n * 2.0 * np.exp(-(((t - h) / 0.15) ** 2)) for n, h in enumerate(hops))
    points = delay_coordinates(v, 3, 5)
    careless = forced_orbits(points, 40.0, multiples=range(1, 5), maps=False)
    careful = forced_orbits(points, 40.0, multiples=range(1, 5), velocity=v, maps=False)

    def hop_inside(orbit: PeriodicOrbit) -> bool:
        return any(orbit.start <= 40 * h <= orbit.start + orbit.period for h in hops)

    assert any(hop_inside(o) for o in careless)
    assert not any(hop_inside(o) for o in careful)
    assert any("another well" in text for text in careful.messages)


def test_given_lost_samples_then_no_segment_contains_them(record: np.ndarray, found: Orbits) -> None:
    best = found.of_multiple(2)[0]
    valid = np.ones(record.shape[1], dtype=bool)
    valid[best.start + 50 : best.start + 60] = False
    broken = record.copy()
    broken[:, ~valid] = np.nan
    again = forced_orbits(broken, 100.0, multiples=range(1, 4), maps=False)
    for orbit in again:
        assert valid[orbit.segment].all()


def test_given_a_short_record_then_the_closure_is_relaxed_and_says_so() -> None:
    few = forced_orbits(duffing(3000), 100.0)
    assert few.epsilon == 0.02
    assert any("relaxed to 2 %" in text for text in few.messages)


def test_given_a_limit_cycle_then_only_its_own_period_is_listed() -> None:
    t = np.arange(20_000) / 50
    wave = np.stack([np.cos(2 * np.pi * t) + 0.3 * np.cos(np.pi * t), np.sin(2 * np.pi * t)])
    orbits = forced_orbits(wave, 50.0, multiples=range(1, 9), maps=False)
    assert [o.multiple for o in orbits] == [2]


def test_given_nonsense_then_it_is_refused_in_one_sentence() -> None:
    with pytest.raises(DataError, match="drive period"):
        forced_orbits(duffing(5000), 2.0)
    with pytest.raises(DataError, match="too short"):
        forced_orbits(duffing(300), 200.0)
