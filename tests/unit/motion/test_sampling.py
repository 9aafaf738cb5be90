"""Records with few samples a turn: maps, and motions seen once in each period of their drive."""

import numpy as np
import pytest

from analysis.motion.sampling import coarse, noise_beside_motion
from analysis.motion.verdict import examine
from analysis.signal.noise import noise_level
from tests.chaotic import lorenz


def _iterated(law: str, start: tuple[float, ...], samples: int, pushes: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(2)
    x, before = start[0], start[-1]
    found = np.empty(samples)
    for i in range(samples):
        after = 4.0 * x * (1 - x) if law == "logistic" else 1 - 1.4 * x**2 + 0.3 * before
        after = 3.3 * x * (1 - x) + pushes * rng.standard_normal() if law == "pushed" else after
        x, before = after, x
        found[i] = x
    return found


@pytest.mark.parametrize(("law", "exponent"), [("logistic", np.log(2)), ("Henon", 0.4192)])
def test_given_a_map_then_it_is_chaotic_and_its_exponent_is_held(law: str, exponent: float) -> None:
    found = examine(_iterated(law, (0.3, 0.2), 8000), 1.0)
    assert found.kind == "chaotic"
    assert found.exponent is not None
    assert found.exponent.value == pytest.approx(exponent, rel=0.05)
    assert found.exponent.lower < exponent < found.exponent.upper
    assert "maps" not in found.exponent.estimates


def test_given_a_map_then_its_motion_is_not_its_noise() -> None:
    x = _iterated("Henon", (0.3, 0.2), 8000)
    assert coarse(x)
    assert noise_level(x).value > x.std()  # of differences alone
    found = noise_beside_motion(x)
    assert found.value < 0.05 * x.std()
    assert not found.settled
    assert "few samples a turn" in found.message


def test_given_a_flow_or_mere_noise_then_the_noise_is_that_of_the_differences() -> None:
    x = lorenz(8000, 0.03)[0]
    assert not coarse(x)
    assert noise_beside_motion(x).value == noise_level(x).value
    white = np.random.default_rng(4).standard_normal(4000)
    assert noise_beside_motion(white).value == pytest.approx(1.0, rel=0.1)


def test_given_a_pushed_cycle_of_a_map_then_it_is_not_called_chaotic() -> None:
    found = examine(_iterated("pushed", (0.3,), 8000, pushes=0.02), 1.0)
    assert found.kind == "cannot tell"
    assert "random pushes" in found.reasons[0]
