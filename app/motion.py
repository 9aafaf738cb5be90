"""The verdict on a motion as commands and pages tell it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from analysis import Exponent, Motion, Orbits


WITHOUT_ORBITS = ("noise", "drifting", "quasi-periodic")


def no_orbits(motion: Motion) -> Orbits:
    """The empty answer for a motion that has no periodic orbits, with the reason."""
    import numpy as np

    from analysis import Orbits

    empty = np.empty(0)
    words = f"The motion is {motion.kind}, which has no periodic orbits to be found: none is offered."
    return Orbits((), 0.0, empty, empty, empty, empty.astype(np.int64), empty, (words,))


def longest_valid(
    valid: NDArray[np.bool_], samples: NDArray[np.float64]
) -> tuple[NDArray[np.float64], list[str]]:
    """The longest stretch without lost or clipped samples, and a remark if that is not all: neighbours across
    a gap would be false.
    """
    import numpy as np

    edges = np.flatnonzero(np.diff(np.concatenate(([0], valid.astype(np.int8), [0]))))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) == 0:
        return samples[:0], []
    best = int(np.argmax(stops - starts))
    part = samples[starts[best] : stops[best]]
    if len(part) == len(samples):
        return part, []
    return part, [
        f"Lost or clipped samples divide the record: the longest whole stretch was used, {len(part)} of "
        f"{len(samples)} samples from sample {starts[best]} on."
    ]


def described_motion(motion: Motion) -> dict[str, Any]:
    """``motion`` and ``evidence`` of a JSON result; keys are the same whatever was found."""
    import numpy as np

    exponent, lines = motion.exponent, motion.lines
    return {
        "motion": motion.kind,
        "evidence": {
            "reasons": list(motion.reasons),
            "lines": None
            if lines is None
            else {
                "count": len(lines.frequencies),
                "fundamentals": lines.fundamentals,
                "foretold": lines.foretold,
            },
            "surrogates": [
                {
                    "kind": test.kind,
                    "level": test.level,
                    "error": test.error,
                    "errors": test.surrogates,
                    "rejected": test.rejected,
                }
                for test in motion.surrogates
            ],
            "neighbours": None if motion.neighbours is None else asdict(motion.neighbours),
            "zero_one": motion.zero_one if np.isfinite(motion.zero_one) else None,
            "far_correlation": motion.far_correlation if np.isfinite(motion.far_correlation) else None,
            "largest_exponent": None if exponent is None else _described_exponent(exponent, motion),
            "permutation_entropy": motion.permutation_entropy
            if np.isfinite(motion.permutation_entropy)
            else None,
            "recurrence": None if motion.recurrence is None else asdict(motion.recurrence),
        },
    }


def _described_exponent(exponent: Exponent, motion: Motion) -> dict[str, Any]:
    """Value and interval, null where they are not to be told; the estimates are evidence all the same."""
    numbers = ("value", "stderr", "lower", "upper", "chance", "spread")
    told = motion.told is not None
    return {
        **{name: getattr(exponent, name) if told else None for name in numbers},
        "estimates": exponent.estimates,
    }
