"""What the numbers of a motion have in common: an error that counts the choices which nobody knows."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 60_000  # samples that are used
_WIDE = 1.96
_SHORTER = 0.6  # delay of the third embedding, over that of the others


@dataclass(frozen=True, eq=False)
class Spread:
    """A value with a standard error that holds chance and the spread over the choices."""

    value: float
    stderr: float

    @property
    def lower(self) -> float:
        """Lower end of the 95 % interval."""
        return self.value - _WIDE * self.stderr

    @property
    def upper(self) -> float:
        """Upper end of the 95 % interval."""
        return self.value + _WIDE * self.stderr


def embeddings(delay: int, dimension: int) -> tuple[tuple[int, int], ...]:
    """Delay (samples) and dimension of the embeddings that are compared, the chosen one first."""
    shorter = max(round(_SHORTER * delay), 1)
    return (delay, dimension), (delay, dimension + 1), (shorter, dimension + 1)
