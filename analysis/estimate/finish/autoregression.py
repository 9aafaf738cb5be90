"""Coloured residuals as an autoregressive process, and what their colour does to a weighted sum of them.

e_t + a_1 e_{t-1} + ... + a_p e_{t-p} = w_t with white w of variance v. The order is chosen by the Bayesian
information criterion, the coefficients by Burg's method (1975), which also serves broken records: stretches
between missing samples enter with the pairs they have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HIGHEST_ORDER = 30
_LEAST_LOOK, _PATIENCE = 12, 8  # orders looked at in any case; orders without gain after which it ends
_SAMPLES_PER_COEFFICIENT = 10  # fewer do not determine a coefficient


@dataclass(frozen=True, eq=False)
class Autoregression:
    """Coefficients a_1 ... a_p and the variance v of the white process that drives it."""

    coefficients: Array
    variance: float

    @property
    def order(self) -> int:
        return len(self.coefficients)

    def whitened(self, rows: Array) -> Array:
        """Rows [..., N] filtered to white noise of unit variance; missing samples (nan) count as zero."""
        filled = np.nan_to_num(rows)
        white = filled.copy()
        for lag, coefficient in enumerate(self.coefficients, 1):
            white[..., lag:] += coefficient * filled[..., :-lag]
        return np.asarray(white / np.sqrt(self.variance))

    def sum_covariance(self, weights: Array) -> Array:
        """Covariance [P, P] of sum_t weights[t] e_t for weights [N, P] (zero where a sample is missing).

        W' C W with the process's covariance matrix C, by its spectrum v / |A|^2 on a padded time axis.
        """
        if not self.order:
            return np.asarray(self.variance * weights.T @ weights)
        from scipy.fft import next_fast_len, rfft

        length = int(next_fast_len(2 * len(weights), real=True))
        spectrum = self.variance / np.abs(rfft(np.concatenate([[1.0], self.coefficients]), length)) ** 2
        waves = rfft(weights, length, axis=0)
        share = np.full(len(spectrum), 2.0)
        share[0] = 1.0
        if length % 2 == 0:
            share[-1] = 1.0
        weighted = waves * (share * spectrum / length)[:, None]
        return np.asarray((weighted.conj().T @ waves).real)


def fit_autoregression(rows: Sequence[Array], highest: int = HIGHEST_ORDER) -> Autoregression:
    """The process behind one output's residuals, given row by row; nan marks missing samples."""
    stretches = [s for row in rows for s in _unbroken(row)]
    samples = sum(len(s) for s in stretches)
    variance = sum(float(s @ s) for s in stretches) / max(samples, 1)
    white = Autoregression(np.zeros(0), max(variance, 1e-300))
    if variance == 0.0:
        return white
    highest = min(highest, samples // _SAMPLES_PER_COEFFICIENT)
    forward = [s[1:] for s in stretches if len(s) > 1]
    backward = [s[:-1] for s in stretches if len(s) > 1]
    coefficients = np.zeros(0)
    best, best_score = white, samples * np.log(variance)
    for order in range(1, highest + 1):
        power = sum(float(f @ f + b @ b) for f, b in zip(forward, backward, strict=True))
        if power <= 0.0:
            break
        reflection = -2.0 * sum(float(f @ b) for f, b in zip(forward, backward, strict=True)) / power
        coefficients = np.concatenate(
            [coefficients + reflection * coefficients[::-1], np.array([reflection])]
        )
        variance *= max(1.0 - reflection**2, 1e-12)
        score = samples * np.log(variance) + order * np.log(samples)
        if score < best_score:
            best, best_score = Autoregression(coefficients, variance), score
        if order >= _LEAST_LOOK and order - best.order >= _PATIENCE:
            break
        pairs = [(f + reflection * b, b + reflection * f) for f, b in zip(forward, backward, strict=True)]
        forward = [f[1:] for f, _ in pairs if len(f) > 1]
        backward = [b[:-1] for _, b in pairs if len(b) > 1]
    return best


def _unbroken(row: Array) -> list[Array]:
    """The stretches of a row without missing samples."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], np.isfinite(row), [False]]).astype(int)))
    return [row[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]
