"""The recursion of a first order against SciPy's filter and against its own definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from analysis.signal.recursion import first_order


@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9999, -0.3, 1.001, 0.6 + 0.7j])
def test_given_a_pole_then_the_filter_is_scipys(kept: complex, rng: np.random.Generator) -> None:
    pushed = rng.standard_normal(500)
    wanted, _ = lfilter([1.0], [1.0, -kept], pushed, zi=np.array([kept * 2.5]))
    assert first_order(kept, pushed, 2.5) == pytest.approx(wanted, rel=1e-11, abs=1e-11)


def test_given_complex_samples_then_every_step_keeps_its_share(rng: np.random.Generator) -> None:
    pushed = rng.standard_normal(60) + 1j * rng.standard_normal(60)
    found = first_order(0.8 - 0.1j, pushed)
    assert found[0] == pushed[0]
    assert found[1:] - (0.8 - 0.1j) * found[:-1] == pytest.approx(pushed[1:], abs=1e-13)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_given_few_samples_then_there_are_as_many(count: int) -> None:
    pushed = np.arange(1.0, 1.0 + count)
    assert first_order(0.5, pushed, 4.0) == pytest.approx([3.0, 3.5][:count])
    assert list(pushed) == list(np.arange(1.0, 1.0 + count))  # untouched
