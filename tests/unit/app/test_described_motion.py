"""How commands tell the largest exponent: with its interval, or not at all."""

import pytest

from analysis.motion.exponent import Exponent
from analysis.motion.verdict import Motion
from app.commands.embed import _largest_words
from app.motion import described_motion


@pytest.mark.parametrize(("stderr", "told"), [(0.009, True), (0.02, False)])
def test_given_estimates_that_disagree_then_their_range_is_told_and_no_value(
    stderr: float, told: bool
) -> None:
    exponent = Exponent(0.03, stderr, 0.003, stderr, {"kantz": (0.09,), "maps": (0.02,)})
    found = described_motion(Motion("chaotic", (), exponent=exponent))["evidence"]["largest_exponent"]
    assert found["estimates"] == {"kantz": (0.09,), "maps": (0.02,)}
    assert found["value"] == (0.03 if told else None)
    assert (found["upper"] is None) is not told
    words = _largest_words(found)
    assert words.startswith("0.03 ± 0.009 /s" if told else "not told  (estimates from 0.02 to 0.09 /s)")
