"""What the present fit knows: values, their covariance, and draws of what the truth may be."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Estimate, Identification
from analysis.model import Model

Array = NDArray[np.float64]

_SENSORS = ("offset", "delay")  # unknowns of a sensor that the next record shares
_ATTEMPTS = 200  # draws outside the bounds that are drawn again


@dataclass(frozen=True, eq=False)
class Knowledge:
    """A model and what a fit says of its unknowns.

    ``indices`` place the unknowns in the vector of the model's k parameters followed by offsets, delays and
    drifts of its q outputs. ``widening`` is each stated standard error over that of white noise and a right
    model: what coloured noise and model errors cost, assumed to stay the same; 1 where the model fits.
    """

    model: Model  # at the fitted values
    names: tuple[str, ...]
    indices: NDArray[np.int64]
    values: Array  # [U]
    covariance: Array  # [U, U]
    widening: Array  # [U]
    noise: dict[str, float]  # standard deviation by output

    @property
    def stderr(self) -> Array:
        return np.asarray(np.sqrt(np.diag(self.covariance)))

    @property
    def information(self) -> Array:
        """Inverse of the covariance, symmetric."""
        scale = self.stderr
        inverse = np.linalg.pinv(self.covariance / np.outer(scale, scale), hermitian=True)
        return np.asarray(inverse / np.outer(scale, scale))

    def unit(self, name: str) -> str:
        return self.model.unit(name if name in self.model.parameters else name.partition(" ")[2])

    def vector(self, values: Array) -> Array:
        """All parameters and sensors' unknowns [k + 3q] with these values of the unknowns."""
        whole = np.concatenate([self.model.values(), np.zeros(3 * len(self.model.outputs))])
        whole[self.indices] = values
        return whole

    def draws(self, count: int, rng: np.random.Generator) -> Array:
        """Values [count, U] from the normal distribution of the fit, inside the model's bounds."""
        scale = self.stderr
        correlation = self.covariance / np.outer(scale, scale)
        level, axes = np.linalg.eigh(0.5 * (correlation + correlation.T))
        root = scale[:, None] * axes * np.sqrt(np.maximum(level, 0.0))
        lower, upper = self._bounds()
        found = np.empty((count, len(self.values)))
        for row in found:
            for _ in range(_ATTEMPTS):
                row[:] = self.values + root @ rng.standard_normal(len(root))
                if np.all((row >= lower) & (row <= upper)):
                    break
            np.clip(row, lower, upper, out=row)
        return found

    def _bounds(self) -> tuple[Array, Array]:
        known = [self.model.parameters.get(name) for name in self.names]
        lower = np.array([-np.inf if p is None else p.lower for p in known])
        upper = np.array([np.inf if p is None else p.upper for p in known])
        return lower, upper


def knowledge_of(model: Model, fit: Identification) -> Knowledge:
    """What a fit knows of this model; DataError where nothing can be planned from it."""
    _check(model, fit)
    k, q = len(model.parameters), len(model.outputs)
    places: dict[str, int] = {name: model.index(name) for name in model.free}
    for order, kind in enumerate(_SENSORS):
        for i, output in enumerate(model.outputs):
            if f"{kind} {output}" in fit.parameters:
                places[f"{kind} {output}"] = k + order * q + i
    names = tuple(sorted(places, key=places.__getitem__))
    found = [fit.parameters[name] for name in names]
    covariance = _covariance(fit, names)
    values = {name: fit.parameters[name].value for name in model.free}
    return Knowledge(
        model.with_values(values),
        names,
        np.array([places[name] for name in names], dtype=np.int64),
        np.array([e.value for e in found]),
        covariance,
        np.array([_widening(e) if fit.verdict != "fits" else 1.0 for e in found]),
        {n: s for n, s in fit.residual.noise.items() if math.isfinite(s) and s > 0},
    )


def _check(model: Model, fit: Identification) -> None:
    if not model.free:
        raise DataError(f"{model.name} has no free parameter: there is nothing that a drive could tell.")
    if fit.model != model.name or not _same_equations(model, fit):
        raise DataError(f"The fit is one of {fit.model or 'no model'}, not of {model.name}.")
    own = [name for name in fit.parameters if name.endswith("]") and name.split("[")[0] in model.free]
    if own:
        raise DataError(
            f"The fit has {own[0].split('[')[0]} for each record: a plan needs parameters that all share."
        )
    missing = [name for name in model.free if name not in fit.parameters]
    if missing:
        raise DataError(f"The fit has no value of {missing[0]}: it is one of another form of {model.name}.")
    if not fit.usable:
        why = (
            f"the model {fit.headline}" if fit.verdict in ("misses", "cannot tell") else "it did not converge"
        )
        raise DataError(f"Nothing can be planned from this fit: {why}.")
    vague = [n for n in model.free if not 0 < fit.parameters[n].stderr < math.inf]
    if fit.undetermined or vague:
        what = fit.undetermined[0].rstrip(".") if fit.undetermined else f"{vague[0]} has no standard error"
        raise DataError(
            f"Nothing can be planned from a fit with an undetermined parameter ({what}): "
            "give it a value, or fit a record that determines it."
        )


def _same_equations(model: Model, fit: Identification) -> bool:
    if not fit.model_text:
        return True
    try:
        return Model.from_toml(fit.model_text).equations == model.equations
    except ModelError:
        return False


def _covariance(fit: Identification, names: tuple[str, ...]) -> Array:
    order = list(fit.parameters)
    stderr = np.array([fit.parameters[n].stderr for n in names])
    whole = np.array(fit.covariance, dtype=np.float64)
    if whole.shape != (len(order), len(order)):
        return np.diag(stderr**2)
    places = [order.index(n) for n in names]
    part = whole[np.ix_(places, places)]
    spread = np.sqrt(np.diag(part))
    if not (np.isfinite(part).all() and (spread > 0).all()):
        return np.diag(stderr**2)
    return np.asarray(part * np.outer(stderr / spread, stderr / spread))


def _widening(e: Estimate) -> float:
    ratio = e.stderr / e.stderr_ideal if e.stderr_ideal > 0 else 1.0
    return max(ratio, 1.0) if math.isfinite(ratio) else 1.0
