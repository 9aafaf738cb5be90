"""A periodic orbit extracted from a record, and all that were found in one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class PeriodicOrbit:
    """A segment of the record that follows a periodic orbit, the closest of all that follow the same one.

    Distances are fractions of the scale of each coordinate (see :class:`Orbits`), root mean square over
    coordinates.
    """

    start: int  # first sample of the segment
    period: float  # in samples, not necessarily whole
    multiple: int | None  # the period in drive periods; None for an autonomous system
    closure: float  # over the window at start and end, the share of noise removed
    closure_bound: float  # upper 95 % bound of it, given the noise
    starts: NDArray[np.int64]  # every recurrence that follows this orbit, the closest first
    multipliers: NDArray[np.complex128] = field(default_factory=lambda: np.empty(0, np.complex128))
    multiplier_stderr: float = np.nan  # of the first of them: the spread over reconstructions and neighbours
    error_bound: float = np.nan  # of the distance between segment and true orbit, eq. 5.14: a guide
    offset: float = np.nan  # that distance as the motion of neighbours implies it
    confirmed: bool | None = None  # Newton's method on the neighbours' motion finds it; None: not tried
    doubt: str = ""  # why it is not confirmed, or why the multipliers are unknown

    @property
    def count(self) -> int:
        """How many separate recurrences follow this orbit."""
        return len(self.starts)

    @property
    def segment(self) -> slice:
        """The samples of one period, its end point included: the first and the last nearly agree."""
        return slice(self.start, self.start + round(self.period) + 1)


@dataclass(frozen=True, eq=False)
class Orbits:
    """Distinct periodic orbits by period, then closure; the curves behind them; remarks in words.

    Orbits that were looked at and not confirmed are not among them but in ``unconfirmed``.
    """

    orbits: tuple[PeriodicOrbit, ...]
    epsilon: float  # closure that was asked for in the end
    scale: NDArray[np.float64]  # of each coordinate, in its unit
    noise: NDArray[np.float64]  # standard deviation of each coordinate, in its unit
    lags: NDArray[np.float64]  # samples
    recurrences: NDArray[np.int64]  # by lag: runs of close returns, before merging
    lowest: NDArray[np.float64]  # by lag: closest return of all
    messages: tuple[str, ...] = ()
    peaks: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))  # autonomous: favoured lags
    unconfirmed: tuple[PeriodicOrbit, ...] = ()  # close returns that are left out, each with its doubt

    def __len__(self) -> int:
        return len(self.orbits)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self.orbits)

    def of_multiple(self, multiple: int) -> tuple[PeriodicOrbit, ...]:
        """Orbits of one period (in drive periods), the closest first."""
        return tuple(o for o in self.orbits if o.multiple == multiple)
