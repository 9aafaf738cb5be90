"""Equations of motion with unknown parts, and the candidate terms of which these may consist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement
from typing import Any

from analysis.base.errors import ModelError
from analysis.model import Model

UNKNOWN = "?"  # stands for the sum of candidate terms in an equation
_MOST_TERMS = 400  # of a library, all equations together
_POWER = re.compile(r"([A-Za-z]\w*)(?:\*\*(\d+))?$")


@dataclass(frozen=True)
class Candidate:
    """A term of the library: coefficient*(term) in the equation of one state."""

    state: str
    term: str

    def __str__(self) -> str:
        return f"{self.term} in d{self.state}/dt"


@dataclass(frozen=True)
class Library:
    """Equations with ``?`` for what is unknown of them; every ``?`` is a sum of coefficient*(term).

    equations   right-hand side of each state, such as {"x": "v", "v": "f - ?"}
    candidates  by the name of the coefficient
    always      coefficients that no choice leaves out
    inputs      as in a model file
    known       parameters of the equations with known value
    free        further parameters of the equations, found beside the coefficients
    """

    equations: Mapping[str, str]
    candidates: Mapping[str, Candidate]
    always: frozenset[str] = frozenset()
    inputs: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)
    free: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = [state for state, text in self.equations.items() if UNKNOWN in text]
        if not unknown:
            raise ModelError("No equation holds a `?`: there is nothing to find.")
        if not self.candidates:
            raise ModelError("Give at least one term, such as x, x**3 or tanh(50*v).")
        if len(self.candidates) > _MOST_TERMS:
            raise ModelError(
                f"The library has {len(self.candidates)} terms, more than the {_MOST_TERMS} that can be "
                "searched: lower the degree or name the terms."
            )
        if not self.optional:
            raise ModelError("Every term is to stay: nothing is left to select.")
        lost = [name for name in self.always if name not in self.candidates]
        if lost:
            raise ModelError(f"`{lost[0]}` is to stay, but it is no coefficient of the library.")

    @property
    def optional(self) -> list[str]:
        """Coefficients among which to choose."""
        return [name for name in self.candidates if name not in self.always]

    def model(self, kept: Sequence[str] | None = None, values: Mapping[str, float] | None = None) -> Model:
        """The model of some of the coefficients (default all), with guesses."""
        chosen = list(self.candidates) if kept is None else [n for n in self.candidates if n in set(kept)]
        values = values or {}
        states = {}
        for state, text in self.equations.items():
            own = [n for n in chosen if self.candidates[n].state == state]
            summed = " + ".join(_product(n, self.candidates[n].term) for n in own)
            states[state] = text.replace(UNKNOWN, f"({summed})" if summed else "0")
        parameters: dict[str, Any] = {n: {"guess": values.get(n, 0.0)} for n in chosen}
        parameters |= {n: {"guess": values.get(n, guess)} for n, guess in self.free.items()}
        parameters |= {n: {"value": value} for n, value in self.known.items()}
        return Model.from_equations(states, parameters, inputs=dict(self.inputs), name="library of terms")


def _product(name: str, term: str) -> str:
    if term == "1":
        return name
    return f"{name}*{term}" if re.fullmatch(r"[\w*]+|\w+\([^()]*\)", term) else f"{name}*({term})"


def monomials(names: Sequence[str], degree: int) -> list[str]:
    """All products of powers of some names up to a degree, the constant first: 1, x, y, x**2, x*y, ..."""
    if not 1 <= degree <= 9:
        raise ModelError("The degree of the polynomials must lie between 1 and 9.")
    found = ["1"]
    for size in range(1, degree + 1):
        for chosen in combinations_with_replacement(names, size):
            powers = {name: chosen.count(name) for name in dict.fromkeys(chosen)}
            found.append("*".join(name if k == 1 else f"{name}**{k}" for name, k in powers.items()))
    return found


def system(
    equations: Mapping[str, str],
    terms: Sequence[str],
    keep: Sequence[str] = (),
    inputs: Mapping[str, str] | None = None,
    known: Mapping[str, float] | None = None,
    free: Mapping[str, float] | None = None,
) -> Library:
    """A library for any equations: the same terms wherever these have a ``?``.

    Coefficients are named by state and term: y_xz for x*z in dy/dt.
    """
    unknown = [state for state, text in equations.items() if UNKNOWN in text]
    terms, keep = _distinct(terms), [_plain(term) for term in keep]
    taken = {*equations, *(inputs or {}), *(known or {}), *(free or {})}
    candidates: dict[str, Candidate] = {}
    for state in unknown:
        others = 0
        for term in [*terms, *(t for t in keep if t not in terms)]:
            label = _label(term)
            if not label or f"{state}_{label}" in candidates:
                others += 1
                label = f"a{others}"
            name = f"{state}_{label}"
            while name in taken or name in candidates:
                name += "_"
            candidates[name] = Candidate(state, term)
    always = frozenset(n for n, c in candidates.items() if c.term in keep)
    return Library(dict(equations), candidates, always, inputs or {}, known or {}, free or {})


def oscillator(
    terms: Sequence[str],
    drive: str = "0",
    known: Mapping[str, float] | None = None,
    keep: Sequence[str] = ("v",),
) -> Library:
    """x'' = drive - sum of coefficient*term over x, v and t: k1, k2, ... for powers of x, c1, ... for v.

    ``drive``: an expression in t, the name of a measured channel, or "tone" for a cosine and a sine of
    unknown size at the angular frequency ``w`` in ``known``.
    """
    terms, keep = _distinct(terms), [_plain(term) for term in keep]
    names = named_terms([*terms, *(t for t in keep if t not in terms)])
    candidates = {name: Candidate("v", term) for name, term in names.items()}
    always = frozenset(name for name, term in names.items() if term in keep)
    inputs, free = {"drive": drive}, {}
    if drive == "tone":
        inputs, free = {"drive": "p*cos(w*t) + q*sin(w*t)"}, {"p": 0.0, "q": 0.0}
    elif drive.isidentifier():
        inputs = {drive: "measured"}
    (name,) = inputs
    if drive == "0":
        inputs, name = {}, ""
    return Library(
        {"x": "v", "v": f"{name} - {UNKNOWN}".strip()}, candidates, always, inputs, known or {}, free
    )


def named_terms(terms: Sequence[str]) -> dict[str, str]:
    """Coefficients for terms in x and v: k0, k1, ... for powers of x, c1, ... for v, a1, ... for others."""
    found: dict[str, str] = {}
    others = 0
    for term in _distinct(terms):
        power = _POWER.match(term)
        if term == "1":
            name = "k0"
        elif power and power[1] in ("x", "v"):
            name = ("k" if power[1] == "x" else "c") + (power[2] or "1")
        else:
            others += 1
            name = f"a{others}"
        found[name] = term
    return found


def _distinct(terms: Sequence[str]) -> list[str]:
    found: list[str] = []
    for text in terms:
        term = _plain(text)
        if not term:
            continue
        if term in found:
            raise ModelError(f"The term {text.strip()} is in the library twice.")
        found.append(term)
    return found


def _plain(text: str) -> str:
    """A term as the model language has it, without blanks and first powers."""
    return re.sub(r"\*\*1(?![\d.])", "", re.sub(r"\s+", "", text).replace("^", "**"))


def _label(term: str) -> str:
    """Letters and digits for a product of powers: x2y for x**2*y; empty for other terms."""
    if term == "1":
        return "0"
    powers = [_POWER.match(factor) for factor in term.replace("**", "^").split("*")]
    powers = [_POWER.match(factor.replace("^", "**")) for factor in term.replace("**", "^").split("*")]
    if not all(powers):
        return ""
    return "".join(p[1] + (p[2] or "") for p in powers if p)
