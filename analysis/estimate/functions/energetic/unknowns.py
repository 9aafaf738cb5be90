"""The unknown functions as one vector: c(t) first, then H(x) or H(x, v)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.base.errors import DataError
from analysis.estimate.functions.energetic.splines import Grid, KnownValue, known_rows
from analysis.estimate.functions.penalised import Smooth

Array = NDArray[np.float64]
KINDS = ("c(t)", "H(x)", "H(x,v)", "c(t)+H(x)", "c(t)+H(x,v)")


@dataclass(frozen=True)
class UnknownFunctions:
    """Grids of the unknown functions (None: that one is not asked for) and what is known about them."""

    c: Grid | None
    x: Grid | None
    v: Grid | None  # of H(x, v)
    c_known: tuple[KnownValue, ...] = ()
    h_known: tuple[KnownValue, ...] = ()
    c_scale: float = 1.0  # typical sizes of the functions, in their units
    h_scale: float = 1.0

    @property
    def c_size(self) -> int:
        return self.c.size if self.c else 0

    @property
    def h_shape(self) -> tuple[int, int]:
        return (self.x.size if self.x else 0, self.v.size if self.v else 1)

    @property
    def size(self) -> int:
        return self.c_size + self.h_shape[0] * self.h_shape[1]

    def smooths(self) -> list[Smooth]:
        """Roughness of each function; of H(x, v) along either variable."""
        out = []
        if self.c:
            out.append(Smooth(slice(0, self.c_size), (self.c.roughness(),), self.c_scale))
        if self.x:
            where = slice(self.c_size, self.size)
            if self.v is None:
                out.append(Smooth(where, (self.x.roughness(),), self.h_scale))
            else:
                along_x = np.asarray(np.kron(self.x.roughness(), self.v.overlap()), dtype=np.float64)
                along_v = np.asarray(np.kron(self.x.overlap(), self.v.roughness()), dtype=np.float64)
                out.append(Smooth(where, (along_x, along_v), self.h_scale))
        return out

    def known(self) -> list[tuple[Array, Array]]:
        """For each function the equations A theta = b on its unknowns."""
        out = []
        if self.c:
            out.append(known_rows(self.c, self.c_known))
        if self.x:
            none = (np.zeros((0, self.h_shape[0] * self.h_shape[1])), np.zeros(0))
            out.append(none if self.v else known_rows(self.x, self.h_known))
        return out

    def polynomial(self) -> list[int]:
        """For each function how many of its first unknowns no penalty sees; 0 for one of two variables."""
        grids = [self.c] if self.c else []
        grids += [self.x] if self.x else []
        return [0 if g is self.x and self.v else g.rough for g in grids if g]

    def turn(self) -> Array:
        """Spline coefficients from the unknowns (see :meth:`Grid.turn`)."""
        from scipy.linalg import block_diag

        parts = [self.c.turn()] if self.c else []
        if self.x:
            parts.append(
                np.asarray(np.kron(self.x.turn(), self.v.turn() if self.v else np.eye(1)), np.float64)
            )
        return np.asarray(block_diag(*parts), dtype=np.float64)

    def coefficients(self, theta: Array) -> tuple[Array, Array]:
        """Spline coefficients of c, and of H as a matrix."""
        raw = self.turn() @ theta[: self.size]
        c = np.ascontiguousarray(raw[: self.c_size])
        return c, np.ascontiguousarray(raw[self.c_size :].reshape(self.h_shape))

    def c_rows(self, t: Array, derivative: int = 0) -> Array:
        """What each unknown of c adds at the times: [len(t), unknowns of c]."""
        assert self.c is not None
        return self.c.basis(t, derivative) @ self.c.turn()

    def h_rows(self, x: Array, v: Array) -> Array:
        """What each unknown of H adds at points (x, v): [len(x), unknowns of H]."""
        assert self.x is not None
        along_x = self.x.basis(x) @ self.x.turn()
        if self.v is None:
            return along_x
        along_v = self.v.basis(v) @ self.v.turn()
        return np.asarray((along_x[:, :, None] * along_v[:, None, :]).reshape(len(x), -1))


def layout(
    unknown: str,
    times: tuple[float, float],
    x: tuple[float, float],
    v: tuple[float, float],
    samples: int,
    intervals: int = 0,
    rough: int = 3,
) -> UnknownFunctions:
    """Grids over the time of the record and over the visited motion, a little beyond it.

    ``intervals``: of every function of one variable; 0: as many as the samples can speak about, at most 64
    (the penalty, not the number of intervals, limits the detail).
    """
    name = unknown.replace(" ", "")
    if name not in KINDS:
        raise DataError(f"The unknown is one of {'; '.join(KINDS)}, not '{unknown}'.")
    many = intervals or int(np.clip(samples // 8, 4, 64))
    few = intervals or int(np.clip(samples // 40, 3, 8))
    c = Grid(*times, many, rough) if name.startswith("c(t)") else None
    grid_x = grid_v = None
    if name.endswith("H(x,v)"):
        grid_x, grid_v = Grid(*x, few, rough), Grid(*v, few, rough)
    elif name.endswith("H(x)"):
        grid_x = Grid(*x, many, rough)
    return UnknownFunctions(c, grid_x, grid_v)
