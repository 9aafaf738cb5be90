"""Where the orbits of a record are sought and confirmed: measured states, or one channel unfolded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.orbits.confirmation import View
from analysis.reconstruct.delay import delay_by_mutual_information
from analysis.reconstruct.dimension import false_neighbours
from analysis.reconstruct.embedding import delay_coordinates, singular_coordinates
from analysis.reconstruct.foretelling import foretelling_reconstructions
from analysis.signal.noise import NoiseLevel, noise_level
from analysis.signal.timescale import mean_period

Array = NDArray[np.float64]

_VIEWS = 4  # reconstructions in which orbits are confirmed, at least
_LOWEST = 4  # dimension of them: in lower ones sheets of an attractor touch
_AS_GOOD = 2.0  # times the smallest error: a reconstruction that foretells so well is another view
_UNSETTLED = 0.1  # of an upper bound of the noise: what is reckoned with where no more is known
_SHORTER = 0.7  # of a delay that was told: the other delay beside it


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """Where close returns are sought (``view``) and where they are confirmed (``views``)."""

    view: View
    views: tuple[View, ...]
    valid: NDArray[np.bool_]  # [N] points without lost samples
    delay: int = 0  # samples between coordinates of ``view``; 0: measured states
    messages: tuple[str, ...] = ()

    @property
    def dimension(self) -> int:
        return len(self.view.points)


def state_space(rows: Sequence[Array], valid: NDArray[np.bool_], names: Sequence[str]) -> SearchSpace:
    """Several channels, taken as the states."""
    points = np.stack([np.where(valid, row, np.mean(row[valid]) if valid.any() else 0.0) for row in rows])
    levels = [noise_level(row[valid]) for row in points]
    extent = np.ptp(points, axis=1)
    scale = np.where(extent > 0, extent, 1.0)
    view = View(points, scale, np.array([level.value for level in levels]))
    maps = View(points, scale, np.array([_of_maps(level) for level in levels]))
    words = [f"{name}: {level.message}" for name, level in zip(names, levels, strict=True) if level.message]
    return SearchSpace(view, (maps,), valid, 0, tuple(words))


def channel_space(
    samples: Array,
    valid: NDArray[np.bool_],
    name: str = "",
    *,
    delay: int | None = None,
    dimension: int | None = None,
    singular: bool = False,
) -> SearchSpace:
    """One channel unfolded by delays (or by singular vectors of the same window).

    Close returns want short windows: a third of the delay that makes the coordinates independent is enough.
    The motion of neighbours wants the coordinates that foretell it best, which cross-validation tells;
    several of them that are about as good are the views. With ``delay`` and ``dimension`` told, the views
    lie around them.
    """
    x = np.where(valid, samples, np.mean(samples[valid]) if valid.any() else 0.0)
    level = noise_level(x[valid])
    words = (f"{name}: {level.message}",) if level.message else ()
    told = delay is not None and dimension is not None
    delay = delay or max(round(delay_by_mutual_information(x, 1.0).samples / 3), 1)
    unfolded = 0 if told else false_neighbours(x, 3 * delay, noise=level.value).dimension
    dimension = dimension or max(unfolded, 3)
    near: tuple[tuple[int, int], ...]
    if told:
        near = ((delay, dimension), (delay, dimension + 1), (max(round(_SHORTER * delay), 1), dimension + 1))
    else:
        lowest = max(unfolded, _LOWEST)
        near = _foretelling(x, (lowest, lowest + 1, lowest + 2))
    extent = float(np.ptp(x)) or 1.0
    views = tuple(
        _view(delay_coordinates(x, d, lag), extent, _of_maps(level))
        for lag, d in dict.fromkeys(near)
        if len(x) - (d - 1) * lag >= 100
    )
    reach = (dimension - 1) * delay
    points = (
        singular_coordinates(x, reach + 1, dimension).coordinates
        if singular
        else delay_coordinates(x, dimension, delay)
    )
    view = _view(points, float(np.ptp(points[0])) or 1.0, level.value)
    whole = np.convolve(~valid, np.ones(reach + 1))[reach : reach + points.shape[1]] < 0.5
    return SearchSpace(view, views, whole, delay, words)


def _of_maps(level: NoiseLevel) -> float:
    """Noise that local maps reckon with: for noise that is not there they take in too much and blur."""
    return level.value if level.settled else _UNSETTLED * level.value


def _view(points: Array, extent: float, noise: float) -> View:
    return View(points, np.full(len(points), extent), np.full(len(points), noise))


def _foretelling(x: Array, dimensions: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Delay and dimension of the reconstructions that foretell the channel half a turn ahead about best."""
    try:
        ranked = foretelling_reconstructions(x, max(round(mean_period(x) / 2), 1), dimensions)
    except DataError:
        return ()
    good = [r for n, r in enumerate(ranked) if n < _VIEWS or r.error <= _AS_GOOD * ranked[0].error]
    return tuple((r.delay, r.dimension) for r in good)
