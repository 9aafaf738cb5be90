"""Error bars that also hold when the noise is coloured or the model is not perfect.

Three estimates of the covariance of a fit with residuals e, sensitivities J and H = (J'J)^-1:
ideal          H s^2, right for white noise and a right model (Cramer and Rao).
coloured       H (J'C J) H with the covariance C of an autoregressive process fitted to e.
between parts  the same fit over K parts, each with its own initial state, gives scores g_k = J_k'e_k; a right
               model's scores scatter as their noise lets them. Where they scatter more, the parameters differ
               from part to part: the error of each is the spread between parts (not divided by sqrt K, since
               a longer record of the same kind would not make the model better), with Student's quantiles.
Which holds is decided by three tests that a fit cannot pass by itself: scores of the parts, scores of the
same parts of the whole fit, and the shift of the parameters between both fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.autoregression import Autoregression, fit_autoregression
from analysis.estimate.finish.linearised import Regression, joined
from analysis.estimate.identifiability import pseudo_inverse

Array = NDArray[np.float64]

PARTS, FEW_PARTS = 8, 4  # with 4 the spread is poorly known, with 16 short parts raise false alarms
SHORT = 400  # samples below which a record is cut into FEW_PARTS
LONG = 100_000  # samples beyond which a fit to parts of a record is one Gauss-Newton step, not another search
DISAGREE = 0.01  # probability below which parts, fits or records count as different
_MANY = 1000.0  # degrees of freedom of the noise from which on it counts as known
_SETTLED = 0.05  # share of the variance below which a difference of two fits only shows where each stopped


@dataclass(frozen=True)
class Test:
    """A statistic and the probability that chance alone exceeds it."""

    statistic: float
    freedom: float
    probability: float


@dataclass(frozen=True, eq=False)
class Errors:
    """A covariance of the unknowns and the degrees of freedom of its quantiles (inf: normal)."""

    covariance: Array
    freedom: float = np.inf

    @property
    def stderr(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def quantile(self) -> float:
        """Half the width of the 95 % interval in standard errors."""
        from scipy.special import ndtri, stdtrit

        return float(ndtri(0.975) if np.isinf(self.freedom) else stdtrit(self.freedom, 0.975))


def noise_processes(regressions: Sequence[Regression], used: float) -> list[Autoregression]:
    """The process of each output's residuals; ``used``: unknowns that have taken up their degrees of
    freedom.
    """
    processes = []
    samples = sum(r.samples for r in regressions)
    for i in range(len(regressions[0].errors)):
        process = fit_autoregression([r.errors[i] for r in regressions])
        factor = samples / max(samples - used, 1.0)
        processes.append(Autoregression(process.coefficients, process.variance * factor))
    return processes


def score_covariance(regression: Regression, processes: Sequence[Autoregression]) -> Array:
    """Covariance [P, P] of J'e for residuals of these processes, output by output."""
    return np.asarray(
        sum(
            process.sum_covariance(rows) for process, rows in zip(processes, regression.jacobian, strict=True)
        )
    )


def sandwich(regressions: Sequence[Regression], processes: Sequence[Autoregression]) -> Array:
    """H (J'C J) H: the covariance of the estimates for coloured residuals."""
    H = pseudo_inverse(joined(regressions)[0])
    return np.asarray(H @ sum(score_covariance(r, processes) for r in regressions) @ H)


Part = Sequence[Regression]  # stretches that belong together: a part of a record, or a whole record


def agreement(
    parts: Sequence[Part], processes: Sequence[Autoregression], noise_freedom: float = np.inf
) -> Test:
    """Do the scores of parts that share their parameters scatter as their noise lets them?

    With informations I_k, noise O_k, H = (sum I)^-1 and the fit at its optimum, the scores have covariance
    C_kl = O_k d_kl - I_k H O_l - O_k H I_l + I_k H (sum O) H I_l. T = sum g_k' (sum O)^-1 g_k is a sum of
    chi-squares whose weights follow from C; parts that hold most of the information thereby count as what
    they are. ``noise_freedom``: degrees of freedom from which the size of the noise was found.
    """
    sums = [joined(part) for part in parts]
    informations, scores = np.array([i for i, _ in sums]), np.array([g for _, g in sums])
    noises = np.array([sum(score_covariance(r, processes) for r in part) for part in parts])
    total = informations.sum(axis=0)
    H, S = pseudo_inverse(total), noises.sum(axis=0)
    scores = scores - informations @ (H @ scores.sum(axis=0))  # at the very optimum
    M = pseudo_inverse(S)
    statistic = float(np.einsum("kp,pr,kr->", scores, M, scores))
    pulls = informations @ H  # [K, P, P]
    covariances = np.einsum("kpr,lrs->klps", pulls, noises)
    covariances = -covariances - covariances.transpose(1, 0, 3, 2)
    covariances += np.einsum("kpr,rs,lts->klpt", pulls, S, pulls)
    covariances[np.arange(len(parts)), np.arange(len(parts))] += noises
    values = _weights(covariances, M)
    return Test(statistic, float(len(values)), _exceeded(statistic, values, noise_freedom))


def _weights(covariances: Array, metric: Array) -> Array:
    """Weights of the chi-squares whose sum is sum g_k' M g_k, for scores of covariance [K, K, P, P].

    The root of M is taken of the scaled matrix: in the parameters' units its eigenvalues may lie further
    apart than numbers have digits, and rounding would take the place of the small ones.
    """
    size = np.sqrt(np.maximum(np.diag(metric), 0.0))
    unit = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(metric / np.outer(unit, unit))
    root = size[:, None] * vectors * np.sqrt(np.maximum(values, 0.0))
    K, _, P, _ = covariances.shape
    inner = np.einsum("pi,klps,sj->kilj", root, covariances, root)
    found = np.linalg.eigvalsh(inner.reshape(K * P, K * P))
    return np.asarray(found[found > 1e-9 * max(float(found.max()), 0.0)])


def _exceeded(statistic: float, weights: Array, noise_freedom: float) -> float:
    """Probability that a weighted sum of chi-squares exceeds the statistic: a chi-square with the same mean,
    variance and skewness (Hall 1983, Buckley and Eagleson 1988).
    """
    if not len(weights):
        return 1.0
    mean, variance, third = weights.sum(), 2.0 * np.sum(weights**2), 8.0 * np.sum(weights**3)
    freedom = 8.0 * variance**3 / third**2
    scaled = (statistic - mean) * np.sqrt(2.0 * freedom / variance) + freedom
    return _chance(max(scaled, 0.0), freedom, noise_freedom)


def _chance(statistic: float, freedom: float, noise_freedom: float) -> float:
    """Probability of a larger chi-square; of a larger F where the noise was found from few samples."""
    from scipy.special import chdtrc, fdtrc

    if noise_freedom >= _MANY:
        return float(chdtrc(freedom, statistic))
    return float(fdtrc(freedom, max(noise_freedom, 1.0), statistic / freedom))


def shift_test(shift: Array, coarse: Array, fine: Array, noise_freedom: float = np.inf) -> Test:
    """Is the shift between the fit over parts (covariance ``coarse``) and the whole one (``fine``) chance?

    d'(coarse - fine)^-1 d (Hausman 1978), over the directions in which the two differ by enough to be told
    from where each search stopped.
    """
    from scipy.linalg import eigh

    scale = np.sqrt(np.maximum(np.diag(fine), 0.0))
    known = np.flatnonzero((scale > 0) & np.isfinite(scale) & np.isfinite(np.diag(coarse)))
    if not len(known):
        return Test(0.0, 0.0, 1.0)
    units = np.outer(scale[known], scale[known])
    chosen = np.ix_(known, known)
    values, directions = np.linalg.eigh(fine[chosen] / units)
    base = (directions * np.maximum(values, 1e-9)) @ directions.T  # all but undetermined: no longer definite
    gain, vectors = eigh((coarse - fine)[chosen] / units, base)
    along = vectors.T @ (shift[known] / scale[known])
    kept = gain > _SETTLED
    if not kept.any():
        return Test(0.0, 0.0, 1.0)
    statistic = float(np.sum(along[kept] ** 2 / gain[kept]))
    return Test(statistic, float(kept.sum()), _chance(statistic, float(kept.sum()), noise_freedom))


def scatter_between(parts: Sequence[Regression]) -> Array:
    """Covariance of the estimates as the scatter of the parts' scores shows it, whatever their noise."""
    count = len(parts)
    H = pseudo_inverse(joined(parts)[0])
    scores = np.array([p.score for p in parts])
    scores = scores - scores.mean(axis=0)
    return np.asarray(count / (count - 1) * H @ (scores.T @ scores) @ H)


def scatter_over_noise(parts: Sequence[Regression], processes: Sequence[Autoregression]) -> Array:
    """Variance of each estimate by the scatter of the parts' scores over that by their noise, at least 1."""
    noise = np.diag(sandwich(parts, processes))
    return np.asarray(np.maximum(np.diag(scatter_between(parts)) / np.maximum(noise, 1e-300), 1.0))


def spread_between(parts: Sequence[Regression], processes: Sequence[Autoregression]) -> Errors:
    """The spread of the parameters between parts, with the quantiles of Student's t."""
    count = len(parts)
    H = pseudo_inverse(joined(parts)[0])
    noise = H @ sum(score_covariance(p, processes) for p in parts) @ H
    between = scatter_between(parts)
    variance = count * np.maximum(np.diag(between), np.diag(noise))
    mixed = between + noise
    size = np.sqrt(np.maximum(np.diag(mixed), 1e-300))
    correlation = mixed / np.outer(size, size)
    return Errors(correlation * np.sqrt(np.outer(variance, variance)), count - 1)
