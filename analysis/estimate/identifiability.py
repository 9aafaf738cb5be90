"""What the data can tell and what they cannot, read off the information matrix and said in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from analysis.base.identification import Identification
from analysis.base.words import rounded

Array = NDArray[np.float64]

_NULL = 1e-12  # eigenvalue of the scaled information below which a direction counts as undetermined
_VISIBLE = 1e-3  # share of a parameter in such a direction below which it is not named
_CONFUSED = 0.7  # correlation from which on two parameters count as confused
_MOST_CONFUSED = 3  # of them named
_ROUNDING = 1e-6  # of the largest share in a direction: a smaller one is rounding
_AS_ONE = 1e-3  # how near to one a factor is shown as one
_SMALL_RATIO = 5e-3  # how near a ratio of relative changes comes to one of small whole numbers


def pseudo_inverse(information: Array) -> Array:
    """Inverse over the directions that the data determine; zero along the others."""
    return _inverse(_scaled(information))


def covariance_of(information: Array) -> Array:
    """Covariance of the estimates; undetermined parameters have infinite variance."""
    return _covariance(_scaled(information))


def undetermined_parameters(information: Array) -> list[int]:
    """Positions of the parameters that take part in an undetermined direction."""
    return _undetermined(_scaled(information))


def undetermined_directions(information: Array) -> Array:
    """Changes of the parameters [P, d] that leave the fit as it is."""
    spectrum = _scaled(information)
    return np.asarray(_null(spectrum) * spectrum[2][:, None])


def undetermined_words(
    information: Array, values: Array, names: Sequence[str], guesses: Array | None = None
) -> list[str]:
    """One sentence for each combination that the data cannot determine, and for each all but undetermined.

    All but undetermined is what has a standard error beyond twice its value and its guess. An estimate of
    zero is none: with a guess of zero there is nothing to hold its error against.
    """
    spectrum = _scaled(information)
    scale = spectrum[2]
    sentences = []
    for direction in _sparse_basis(_null(spectrum)).T:
        change = direction * scale
        involved = [int(i) for i in np.flatnonzero(np.abs(direction) > _VISIBLE * np.abs(direction).max())]
        sentences.append(_sentence(change, values, names, involved))
    bad = set(_undetermined(spectrum))
    errors = np.sqrt(np.diag(_covariance(spectrum)))
    expected = values if guesses is None else guesses
    for i, name in enumerate(names):
        size = max(abs(values[i]), abs(expected[i]))
        if i not in bad and expected[i] != 0 and errors[i] > 2 * size:
            what = "value" if size == abs(values[i]) else "guess"
            times = rounded(errors[i] / size, 2)
            sentences.append(f"{name} is hardly determined: standard error {times} times its {what}.")
    return sentences


Spectrum = tuple[Array, Array, Array]  # eigenvalues and vectors of the scaled information, and the scale


def _inverse(spectrum: Spectrum) -> Array:
    values, vectors, scale = spectrum
    keep = values > _NULL * values.max(initial=0.0)
    inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T
    with np.errstate(over="ignore", invalid="ignore"):  # of numbers that are absurd already
        return np.asarray(inverse * np.outer(scale, scale))


def _covariance(spectrum: Spectrum) -> Array:
    covariance = _inverse(spectrum)
    for i in _undetermined(spectrum):
        covariance[i, i] = np.inf
    return covariance


def _null(spectrum: Spectrum) -> Array:
    values, vectors, _ = spectrum
    return vectors[:, values <= _NULL * values.max(initial=0.0)]


def _undetermined(spectrum: Spectrum) -> list[int]:
    share = np.sqrt(np.sum(_null(spectrum) ** 2, axis=1))
    return [int(i) for i in np.flatnonzero(share > _VISIBLE)]


def _scaled(information: Array) -> Spectrum:
    """Eigenvalues and vectors after scaling to unit diagonal, and the scale (1 for unseen ones)."""
    size = np.sqrt(np.maximum(np.diag(information), 0.0))
    scale = np.where(size > 0, 1.0 / np.where(size > 0, size, 1.0), 1.0)
    matrix = np.where(np.outer(size > 0, size > 0), information * scale[:, None] * scale, 0.0)
    values, vectors = np.linalg.eigh(matrix)
    return values, vectors, scale


def _sparse_basis(null: Array) -> Array:
    """The same space spanned by vectors with as many zeros as elimination gives."""
    basis = null.copy()
    used: list[int] = []
    for column in range(basis.shape[1]):
        free = [i for i in range(len(basis)) if i not in used]
        pivot = max(free, key=lambda i: abs(basis[i, column]))
        basis[:, column] /= basis[pivot, column]
        for other in range(basis.shape[1]):
            if other != column:
                basis[:, other] -= basis[pivot, other] * basis[:, column]
        used.append(pivot)
    basis[np.abs(basis) < _ROUNDING] = 0.0
    return basis


def _sentence(change: Array, values: Array, names: Sequence[str], involved: list[int]) -> str:
    listed = _listed([names[i] for i in involved])
    if len(involved) == 1:
        return f"{listed} has no visible effect on the data."
    weights = [change[i] / change[involved[0]] for i in involved]
    if all(values[i] != 0 for i in involved):
        powers = _powers(np.array([change[i] / values[i] for i in involved]))
        plain_sum = len(involved) == 2 and abs(abs(weights[1]) - 1) < _AS_ONE
        if powers is not None and (not plain_sum or abs(powers[0]) == abs(powers[1])):
            return _power_sentence(listed, powers, [names[i] for i in involved])
    if len(involved) == 2:
        ratio = -1.0 / weights[1]
        sign = "+" if ratio > 0 else "-"
        factor = "" if abs(abs(ratio) - 1) < _AS_ONE else f"{abs(ratio):.4g} "
        return f"{listed}: only {names[involved[0]]} {sign} {factor}{names[involved[1]]} is determined."
    moves = "; ".join(f"{names[i]} by {w:.3g}" for i, w in zip(involved, weights, strict=True))
    return f"{listed} cannot be told apart: changing {moves} changes nothing that the sensors see."


def _powers(relative: Array) -> list[Fraction] | None:
    """Relative changes as small whole ratios, if they are."""
    base = relative[np.argmax(np.abs(relative))]
    fractions = [Fraction(float(r / base)).limit_denominator(4) for r in relative]
    close = all(abs(float(f) - r / base) < _SMALL_RATIO for f, r in zip(fractions, relative, strict=True))
    return fractions if close and all(f != 0 for f in fractions) else None


def _power_sentence(listed: str, powers: list[Fraction], names: list[str]) -> str:
    if len(names) == 2 and powers[0] == -powers[1]:
        return f"{listed} only appear as a product."
    if len(names) == 2 and powers[0] == powers[1]:
        return f"{listed} only appear as a ratio."
    powers = [f * (1 if powers[0] > 0 else -1) for f in powers]
    scaled = [
        f"{name} by s{'' if f == 1 else f'^{float(f):g}'}" for name, f in zip(names, powers, strict=True)
    ]
    return (
        f"{listed} cannot be told apart: multiplying {_listed(scaled)}, whatever s is, changes nothing "
        "that the sensors see."
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def confusion_words(result: Identification, name: str) -> list[str]:
    """What a parameter is confused with, in sentences: undetermined combinations, then strong correlations.

    With one other parameter known the standard error falls by sqrt(1 - r^2); with all of them known it falls
    to 1 over the root of the parameter's own element of the inverse covariance.
    """
    words = [text for text in result.undetermined if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
    names, matrix = _correlations(result)
    if name not in names:
        return words or [f"The fit tells no error bar of {name}, so no correlations either."]
    own = names.index(name)
    others = sorted((i for i in range(len(names)) if i != own), key=lambda i: -abs(matrix[own, i]))
    strong = [i for i in others if abs(matrix[own, i]) >= _CONFUSED]
    words += [_confusion(name, names[i], float(matrix[own, i])) for i in strong[:_MOST_CONFUSED]]
    if not strong and others:
        r = _signed(float(matrix[own, others[0]]))
        words.append(f"Confused with no other: the strongest correlation is {r}, with {names[others[0]]}.")
    if len(strong) > 1:
        inverse = np.linalg.pinv(matrix, hermitian=True)
        gain = np.sqrt(max(inverse[own, own], 1.0))
        words.append(
            f"With all others known the error bar of {name} would be {rounded(gain, 2)} times smaller."
        )
    return words


def _correlations(result: Identification) -> tuple[list[str], Array]:
    """Parameters that have an error bar, and their correlations."""
    names, total = list(result.parameters), np.array(result.covariance, dtype=np.float64)
    if total.shape != (len(names), len(names)):
        return [], np.zeros((0, 0))
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.diag(total))
    told = np.flatnonzero(np.isfinite(errors) & (errors > 0))
    matrix = total[np.ix_(told, told)] / np.outer(errors[told], errors[told])
    return [names[i] for i in told], np.clip(np.nan_to_num(matrix), -1.0, 1.0)


def _confusion(name: str, other: str, r: float) -> str:
    way = "larger" if r > 0 else "smaller"
    gain = 1.0 / np.sqrt(max(1.0 - r * r, 1e-12))
    return (
        f"A larger {name} with a {way} {other} fits nearly as well (correlation {_signed(r)}): with {other} "
        f"known the error bar of {name} would be {rounded(gain, 2)} times smaller."
    )


def _signed(r: float) -> str:
    """A correlation with as many nines as tell it from one."""
    digits = int(np.clip(np.ceil(-np.log10(max(1.0 - abs(r), 1e-6))) + 1, 2, 6))
    return f"{r:.{digits}f}".replace("-", "\N{MINUS SIGN}")
