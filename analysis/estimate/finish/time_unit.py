"""Is the record's time in another unit than the model's?

A record whose times are milliseconds, read as seconds, is followed as well by a model without a drive of its
own: its rates come out a thousand times too small, all of them alike. A guess that is merely poor is not off
like that: frequency and damping would have to be off by the same power of ten.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from analysis.estimate.finish.fitted import Fitted

Array = NDArray[np.float64]

_UNITS = {1e3: "milliseconds", 1e6: "microseconds"}  # read as seconds; or the other way round
_FREQUENCY = 2.0  # factor within which a guess of each rate's size is then right
_DAMPING = 5.0  # the same of its real part, which is guessed less well


def time_unit_words(fitted: Fitted) -> str:
    """A sentence if all rates of the model are off their guesses by one unit of time; empty otherwise."""
    model = fitted.experiment.model
    if len(model.states) < 2:
        return ""  # a single rate is off by anything
    piece = fitted.pieces[0]
    state = piece.states.mean(axis=1)
    guessed = _rates(fitted, state, model.values())
    found = _rates(fitted, state, fitted.values[piece.record, : len(model.parameters)])
    for factor, name in _UNITS.items():
        if _slower(guessed, found, factor):
            return _words(f"{factor:g} times slower", f"the record's times are {name}")
        if _slower(found, guessed, factor):
            return _words(f"{factor:g} times faster", f"the model's are {name}")
    return ""


def _rates(fitted: Fitted, state: Array, values: Array) -> Array:
    """Eigenvalues [n] of the model linearised at a state, in order of their size."""
    kernels, piece = fitted.experiment.model.kernels(), fitted.pieces[0]
    n, t = len(state), float(piece.times[0])
    u = np.ascontiguousarray(piece.run.inputs.values(piece.times[:1])[:, 0])
    A = np.zeros((n, n))
    p = np.ascontiguousarray(values, dtype=np.float64)
    kernels.jac(t, np.ascontiguousarray(state), u, p, np.empty(n), A, np.zeros((n, len(p))))
    if not np.isfinite(A).all():
        return np.full(n, np.nan, dtype=complex)
    rates = np.linalg.eigvals(A)
    return np.asarray(rates[np.argsort(np.abs(rates))])


def _slower(fast: Array, slow: Array, factor: float) -> bool:
    """Whether the rates ``slow`` are ``fast`` over the factor, each of them."""
    sizes, damping = np.abs(fast) / factor, np.abs(fast.real) / factor
    return bool(
        np.all((np.abs(slow) > sizes / _FREQUENCY) & (np.abs(slow) < sizes * _FREQUENCY))
        and np.all((np.abs(slow.real) >= damping / _DAMPING) & (np.abs(slow.real) <= damping * _DAMPING))
    )


def _words(what: str, meaning: str) -> str:
    return (
        f"All rates of the model come out {what} than guessed, frequency and damping alike, as if {meaning}: "
        "say the unit of the times (t [ms] in the header) or the rate, write the model in seconds (times "
        "whose unit is said are converted), or give guesses that are nearer."
    )
