"""Equations of motion with unknown parts, and the candidate terms of which these may consist."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any

from analysis.base.errors import ModelError
from analysis.model import Model
from analysis.model.grammar import RESERVED

UNKNOWN = "?"  # stands for the sum of candidate terms in an equation
_MOST_TERMS = 400  # of a library, all equations together
_POWER = re.compile(r"([A-Za-z]\w*)(?:\*\*(\d+))?$")
_NAME = re.compile(r"[A-Za-z_]\w*")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\w*\()")  # a name that is not called; not the e of 1e-3


@dataclass(frozen=True)
class Candidate:
    """A term of the library: coefficient*(term) in the equation of one state."""

    state: str
    term: str

    def __str__(self) -> str:
        return f"{self.term} in d{self.state}/dt"


@dataclass(frozen=True)
class Shape:
    """A number inside terms, such as the gap of a contact, in which the equations are not linear.

    Without bounds the record says between which values it makes a difference.
    """

    lower: float | None = None
    upper: float | None = None
    guess: float = 1.0

    def __post_init__(self) -> None:
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise ModelError(f"The range {self.lower:g} to {self.upper:g} of a shape is empty.")


@dataclass(frozen=True)
class Library:
    """Equations with ``?`` for what is unknown of them; every ``?`` is a sum of coefficient*(term).

    equations   right-hand side of each state, such as {"x": "v", "v": "f - ?"}
    candidates  by the name of the coefficient
    always      coefficients that no choice leaves out
    inputs      as in a model file
    known       parameters of the equations with known value
    free        further parameters of the equations, found beside the coefficients
    shapes      numbers inside terms, or inside equations of states that nothing shows, found with the terms
    rates       channels that show the rate of a state, such as {"a": "v"} for an accelerometer
    """

    equations: Mapping[str, str]
    candidates: Mapping[str, Candidate]
    always: frozenset[str] = frozenset()
    inputs: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, float] = field(default_factory=dict)
    free: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    rates: Mapping[str, str] = field(default_factory=dict)

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
        taken = {*self.equations, *self.candidates, *self.inputs, *self.known, *self.free, *self.rates}
        if twice := [name for name in self.shapes if name in taken]:
            raise ModelError(f"The name {twice[0]} of a shape means something else already: choose another.")
        self._check_terms(taken | set(self.shapes) | RESERVED)
        unused = [name for name in self.shapes if not self.users(name)]
        if unused:
            raise ModelError(f"The shape {unused[0]} is in no term of the library.")
        astray = [state for state in self.rates.values() if state not in self.equations]
        if astray:
            raise ModelError(f"A channel is to show the rate of {astray[0]}, which is no state.")

    def _check_terms(self, known: set[str]) -> None:
        for candidate in self.candidates.values():
            strange = [name for name in _WORD.findall(candidate.term) if name not in known]
            if strange:
                raise ModelError(
                    f"The term {candidate.term} holds {strange[0]}, neither a state nor a channel: if "
                    "it is a number to be found inside the term, name it as a shape."
                )

    @property
    def optional(self) -> list[str]:
        """Coefficients among which to choose."""
        return [name for name in self.candidates if name not in self.always]

    def users(self, shape: str) -> tuple[str, ...]:
        """Coefficients whose terms come with a shape: terms that hold it, by themselves or through a state
        without a `?`, and all terms of an equation whose known part does."""
        steered = self.steered(shape)
        return tuple(
            n for n, c in self.candidates.items() if c.state in steered or shape in self.reach(c.term)
        )

    def steered(self, shape: str) -> tuple[str, ...]:
        """States with a `?` the known part of whose equations holds a shape, such as the lag of a drive."""
        return tuple(s for s, text in self.equations.items() if UNKNOWN in text and shape in self.reach(text))

    def reach(self, text: str) -> set[str]:
        """Names in an expression, and in the equations without a `?` of the states that it holds."""
        found: set[str] = set()
        waiting = set(_NAME.findall(text))
        while waiting:
            found |= waiting
            inner = [self.equations.get(name, UNKNOWN) for name in waiting]
            waiting = {name for one in inner if UNKNOWN not in one for name in _NAME.findall(one)} - found
        return found

    def with_shapes(self, shapes: Mapping[str, Shape]) -> Library:
        """The same library with other ranges and guesses of its shapes."""
        return replace(self, shapes={**self.shapes, **shapes})

    def model(
        self,
        kept: Sequence[str] | None = None,
        values: Mapping[str, float] | None = None,
        hidden: Sequence[str] = (),
    ) -> Model:
        """The model of some of the coefficients (default all), with guesses; states among ``hidden``, which
        no channel shows, are left out where no kept term holds them."""
        chosen = list(self.candidates) if kept is None else [n for n in self.candidates if n in set(kept)]
        values = values or {}
        states = {}
        for state, text in self.equations.items():
            own = [n for n in chosen if self.candidates[n].state == state]
            summed = " + ".join(_product(n, self.candidates[n].term) for n in own)
            states[state] = text.replace(UNKNOWN, f"({summed})" if summed else "0")
        if kept is not None:
            held = {name for s in states if s not in hidden for name in self.reach(states[s])}
            states = {s: text for s, text in states.items() if s not in hidden or s in held}
        parameters: dict[str, Any] = {n: {"guess": values.get(n, 0.0)} for n in chosen}
        parameters |= {n: {"guess": values.get(n, guess)} for n, guess in self.free.items()}
        parameters |= {n: {"value": value} for n, value in self.known.items()}
        for name, shape in self.shapes.items():
            if set(self.users(name)) & set(chosen):
                ends = {"lower": shape.lower, "upper": shape.upper}
                bounds = {key: end for key, end in ends.items() if end is not None}
                parameters[name] = {"guess": values.get(name, shape.guess), **bounds}
        outputs = {**{s: s for s in states}, **{n: states[s] for n, s in self.rates.items()}}
        return Model.from_equations(
            states,
            parameters,
            inputs=dict(self.inputs),
            outputs=outputs if self.rates else None,
            name="library of terms",
        )


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
    shapes: Mapping[str, Shape] | Sequence[str] = (),
    rates: Mapping[str, str] | None = None,
) -> Library:
    """A library for any equations: the same terms wherever these have a ``?``.

    Coefficients are named by state and term: y_xz for x*z in dy/dt. ``shapes`` are names of numbers to be
    found inside terms; ``rates`` are channels that show the rate of a state.
    """
    shapes = _shapes(shapes)
    unknown = [state for state, text in equations.items() if UNKNOWN in text]
    terms, keep = _distinct(terms), [_plain(term) for term in keep]
    taken = {*equations, *(inputs or {}), *(known or {}), *(free or {}), *shapes, *(rates or {})}
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
    return Library(
        dict(equations), candidates, always, inputs or {}, known or {}, free or {}, shapes, rates or {}
    )


def oscillator(
    terms: Sequence[str],
    drive: str = "0",
    known: Mapping[str, float] | None = None,
    keep: Sequence[str] = ("v",),
    shapes: Mapping[str, Shape] | Sequence[str] = (),
    acceleration: str = "",
    gain: str = "",
) -> Library:
    """x'' = drive - sum of coefficient*term over x, v and t: k1, k2, ... for powers of x, c1, ... for v.

    ``drive``: an expression in t, the name of a measured channel, or "tone" for a cosine and a sine of
    unknown size at the angular frequency ``w`` in ``known``. ``shapes`` are names of numbers to be found
    inside terms; ``acceleration`` is the channel of an accelerometer. ``gain`` names the number, to be found,
    that a drive in another unit than that of x'' comes with: one over the mass for a force.
    """
    shapes = _shapes(shapes)
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
    if name and gain:
        free, name = {**free, gain: 1.0}, f"{gain}*{name}"
    return Library(
        {"x": "v", "v": f"{name} - {UNKNOWN}".strip()}, candidates, always, inputs, known or {}, free, shapes,
        {acceleration: "v"} if acceleration else {},
    )  # fmt: skip


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


def _shapes(given: Mapping[str, Shape] | Sequence[str]) -> dict[str, Shape]:
    return dict(given) if isinstance(given, Mapping) else {name: Shape() for name in given}


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
