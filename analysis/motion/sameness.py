"""Does a record show one motion throughout? What each stretch shows must come again outside of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.words import percent
from analysis.motion.determinism import Space, with_phase
from analysis.reconstruct.embedding import delay_coordinates
from analysis.reconstruct.neighbours import build_tree, nearest_some

Array = NDArray[np.float64]

PARTS = 16  # of the record; a stretch is a run of ...
_SHORTEST = 2  # ... so many of them at least, and leaves as many outside
_REFERENCES = 4000  # points whose neighbours are looked for
_NEIGHBOURS = 4
_ALONE = 0.2  # of the neighbours expected outside, below which a stretch shows a motion of its own


@dataclass(frozen=True)
class Sameness:
    """The stretch of the record that has fewest of its neighbours outside of itself."""

    begin: float  # of the record
    end: float
    share: float  # of the neighbours that would lie outside if the motion were the same everywhere

    @property
    def changes(self) -> bool:
        """Whether the record shows more than one motion."""
        return self.share < _ALONE

    def __str__(self) -> str:
        return (
            f"the record shows more than one motion: what it does between {100 * self.begin:.3g} and "
            f"{percent(self.end, 3)} of its length hardly comes again ({percent(self.share)} of the "
            "neighbours in phase space that one motion would have there); cut it where the motion changes"
        )


def sameness(samples: Array, space: Space) -> Sameness:
    """How much of what any stretch shows comes again outside of it (after Schreiber 1997)."""
    points = delay_coordinates(np.asarray(samples, dtype=np.float64), space.dimension, space.delay)
    if space.period is not None:
        points = with_phase(points, space.period)
    total = points.shape[1]
    every = max(total // _REFERENCES, 1)
    rows, places, _ = nearest_some(build_tree(points), _NEIGHBOURS, space.theiler, every)
    counts = np.zeros((PARTS, PARTS))
    np.add.at(counts, (rows[:, None] * PARTS // total, places * PARTS // total), 1.0)
    lengths = range(_SHORTEST, PARTS - _SHORTEST + 1)
    found = []
    for begin, end in ((a, a + length) for length in lengths for a in range(PARTS - length + 1)):
        own = counts[begin:end]
        outside = 1.0 - own[:, begin:end].sum() / own.sum()
        share = float(outside / (1.0 - (end - begin) / PARTS))
        found.append(Sameness(begin / PARTS, end / PARTS, share))
    return min(found, key=lambda stretch: stretch.share)
