"""Measured mode shapes beside those of the beam; the scale of a shape means nothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.description import Shapes
from analysis.estimate.functions.beam.system import BeamSystem, State

Array = NDArray[np.float64]


def compare_shapes(
    system: BeamSystem, state: State, theta: Array, measured: Shapes, modes: NDArray[np.intp]
) -> list[tuple[Array, Array]]:
    """Weighted residuals [S] and Jacobian [S, P] of each shape, its scale projected out (Kaufman 1975).

    ``modes``: their numbers from 0 on, rigid motions not counted.
    """
    rows, slide = system.rows(measured.places, theta)
    kept = state.modes.shapes[:, state.modes.kept]
    order = np.argsort(np.abs(state.modes.poles[state.modes.kept]))[system.rigid :][modes]
    length = system.unknowns.block("length")
    out = []
    for k, data in zip(order, measured.values, strict=True):
        inner = rows @ state.basis
        shape = inner @ kept[:, k]
        turn = np.conj(shape[np.argmax(np.abs(shape))])
        turn = turn / abs(turn) ** 2  # the largest value is 1, and real
        if len(state.dshapes):
            change = inner @ state.dshapes[:, :, k].T
            if length is not None:
                change[:, length.where.start] += slide @ state.basis @ kept[:, k]
        else:
            change = np.zeros((len(inner), 0), dtype=np.complex128)
        model, slope = (shape * turn).real, (change * turn).real
        error = measured.error * float(np.max(np.abs(data)))
        scale = float(model @ data) / float(model @ model)
        residual = (scale * model - data) / error
        unit = model / np.linalg.norm(model)
        slope = scale * slope / error
        out.append((residual, slope - np.outer(unit, unit @ slope)))
    return out
