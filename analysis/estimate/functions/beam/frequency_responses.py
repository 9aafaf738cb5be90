"""Measured frequency responses beside those of the beam, with derivatives in every unknown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.functions.beam.description import INPUT_KINDS, SENSOR_KINDS, MeasuredResponse
from analysis.estimate.functions.beam.response import Complex
from analysis.estimate.functions.beam.system import BeamSystem, State

Array = NDArray[np.float64]

_FLOOR = 0.1  # of the median size: smaller values, at antiresonances, are not known better than that


def response_error(measured: MeasuredResponse) -> Array:
    """Standard error of the real and of the imaginary part at each frequency."""
    size = np.abs(measured.values)
    return measured.error * np.hypot(size, _FLOOR * float(np.median(size)))


def compare_response(
    system: BeamSystem, state: State, theta: Array, measured: MeasuredResponse
) -> tuple[Array, Array]:
    """Weighted residuals [2 F] (real parts, then imaginary ones) and Jacobian [2 F, P]."""
    value, slope = predicted_response(system, state, theta, measured)
    error = response_error(measured)
    residual = (value - measured.values) / error
    slope = slope / error
    return np.concatenate([residual.real, residual.imag]), np.concatenate([slope.real, slope.imag], axis=1).T


def predicted_response(
    system: BeamSystem, state: State, theta: Array, measured: MeasuredResponse
) -> tuple[Complex, Complex]:
    """The beam's own response [F] where ``measured`` was taken, and its derivatives [P, F].

    H(s) = s^o sum_k R_k / (s - lambda_k) over all poles, with R_k the product of the mode at sensor and drive
    and o the derivatives that sensor and drive take. A sensor that sees the base sees one more.
    """
    modes, drive = state.modes, measured.drive
    kept, poles = modes.shapes[:, modes.kept], modes.poles[modes.kept]
    length = system.unknowns.block("length")
    sensor, moved = _row(system, state, theta, measured.at)
    if drive.at is None:
        load, dload = state.base_load, state.dbase_load
    else:
        load, slide = _row(system, state, theta, drive.at)
        dload = {} if length is None else {length.where.start: slide}
    seen, driven = sensor @ kept, load @ kept
    s = 2j * np.pi * measured.frequencies
    turned = np.asarray(s ** (SENSOR_KINDS[measured.kind] + INPUT_KINDS[drive.kind]), np.complex128)
    near, far = (1.0 / (s[None, :] - p[:, None]) for p in (poles, np.conj(poles)))  # [K, F]
    weight = 0.5 * modes.twice  # a real pole is its own conjugate
    residue = weight * seen * driven
    value: Complex = np.asarray(turned * (residue @ near + np.conj(residue) @ far))
    if measured.with_base:
        value = value + 1.0
    if not len(state.dpoles):
        return value, np.zeros((0, len(s)), dtype=np.complex128)
    dseen = np.einsum("r,prk->pk", sensor, state.dshapes)
    ddriven = np.einsum("r,prk->pk", load, state.dshapes)
    if length is not None:
        dseen[length.where.start] += moved @ kept
    for p, change in dload.items():
        ddriven[p] += change @ kept
    dresidue = weight * (dseen * driven + seen * ddriven)
    shifted = residue * state.dpoles
    slope = dresidue @ near + shifted @ near**2 + np.conj(dresidue) @ far + np.conj(shifted) @ far**2
    return value, np.asarray(turned * slope)


def _row(system: BeamSystem, state: State, theta: Array, at: float) -> tuple[Array, Array]:
    """Reduced shapes at a place, and their derivative by the logarithm of the length."""
    rows, slide = system.rows(np.array([at]), theta)
    return rows[0] @ state.basis, slide[0] @ state.basis
