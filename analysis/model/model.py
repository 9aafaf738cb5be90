"""The model: equations written once, used by simulation, identification, the virtual rig and the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.base.errors import ModelError
from analysis.model.equations import Equations, suggestion

if TYPE_CHECKING:
    from analysis.model.kernels import Kernels


@dataclass(frozen=True)
class Parameter:
    """A constant of the model: known, or free to be identified between its bounds."""

    value: float  # known value, or the guess from which identification starts
    lower: float = -math.inf
    upper: float = math.inf
    unit: str = ""
    free: bool = False


@dataclass(frozen=True)
class Initial:
    """A state at the first sample: known, or to be identified."""

    value: float
    free: bool = False
    lower: float = -math.inf
    upper: float = math.inf


@dataclass(frozen=True)
class Model:
    """A system of first-order differential equations with its parameters, inputs and outputs."""

    name: str
    equations: Equations
    parameters: dict[str, Parameter]
    initial: dict[str, Initial] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)  # of states, inputs, definitions and outputs
    description: str = ""
    reference: str = ""
    text: str = field(default="", compare=False)  # the model file

    @staticmethod
    def from_toml(text: str, source: str = "model") -> Model:
        """Read a model file; ModelError names the source, line, column and the likely fix."""
        from analysis.model import document, reading

        return reading.model(document.read(text, source))

    @staticmethod
    def from_equations(
        states: Mapping[str, str],
        parameters: Mapping[str, float | Mapping[str, Any] | Parameter] | None = None,
        *,
        name: str = "model",
        inputs: Mapping[str, str] | None = None,
        definitions: Mapping[str, str | Mapping[str, Any]] | None = None,
        outputs: Mapping[str, str] | None = None,
        initial: Mapping[str, float | Mapping[str, float] | Initial] | None = None,
        units: Mapping[str, str] | None = None,
        description: str = "",
        reference: str = "",
    ) -> Model:
        """Build a model in code, from the same texts and tables that a model file holds."""
        from analysis.model import reading

        data = {
            "name": name,
            "description": description,
            "reference": reference,
            "states": states,
            "inputs": inputs,
            "parameters": parameters,
            "definitions": definitions,
            "outputs": outputs,
            "initial": initial,
            "units": units,
        }
        return reading.from_tables({key: value for key, value in data.items() if value}, name)

    @property
    def states(self) -> tuple[str, ...]:
        return tuple(self.equations.states)

    @property
    def inputs(self) -> tuple[str, ...]:
        """The measured inputs; those given as expressions of t are part of the equations."""
        return self.equations.measured

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.equations.outputs)

    @property
    def free(self) -> tuple[str, ...]:
        """The parameters to be identified."""
        return tuple(name for name, p in self.parameters.items() if p.free)

    @property
    def linear(self) -> tuple[str, ...]:
        """Free parameters in which the right-hand side is jointly linear (affine), the others given."""
        from analysis.model.linearity import linear_parameters

        return linear_parameters(self.equations.system, self.free)

    @property
    def is_linear(self) -> bool:
        """Whether the right-hand side is jointly linear in all free parameters."""
        return self.linear == self.free

    def unit(self, name: str) -> str:
        """The unit of a state, input, output or parameter, "" if none is given."""
        if name in self.parameters:
            return self.parameters[name].unit
        return self.units.get(name, "")

    def index(self, name: str) -> int:
        """Position of a parameter in the vector of values."""
        self._check_known([name], self.parameters, "parameter")
        return list(self.parameters).index(name)

    def values(self, overrides: Mapping[str, float] | None = None) -> np.ndarray:
        """All parameter values in order, some of them replaced."""
        chosen = {name: p.value for name, p in self.parameters.items()}
        if overrides:
            self._check_known(overrides, self.parameters, "parameter")
            chosen.update({name: _finite(name, value) for name, value in overrides.items()})
        return np.array(list(chosen.values()), dtype=np.float64)

    def with_values(self, values: Mapping[str, float]) -> Model:
        """The same model with other values or guesses; a bound that a new value exceeds moves to it."""
        self._check_known(values, self.parameters, "parameter")
        changed = dict(self.parameters)
        for name, given in values.items():
            value, old = _finite(name, given), changed[name]
            lower, upper = min(old.lower, value), max(old.upper, value)
            changed[name] = replace(old, value=value, lower=lower, upper=upper)
        return self._changed(parameters=changed)

    def with_free(self, names: Iterable[str]) -> Model:
        """The same model in which exactly the named parameters are to be identified."""
        names = set(names)
        self._check_known(names, self.parameters, "parameter")
        changed = {name: replace(p, free=name in names) for name, p in self.parameters.items()}
        return self._changed(parameters=changed)

    def with_initial(self, values: Mapping[str, float]) -> Model:
        """The same model with other known initial values."""
        self._check_known(values, self.states, "state")
        changed = {**self.initial, **{name: Initial(_finite(name, v)) for name, v in values.items()}}
        return self._changed(initial={name: changed[name] for name in self.states if name in changed})

    def with_range(self, name: str, lower: float, upper: float, axis: int = 0) -> Model:
        """The model whose unknown function ``name`` is sought between these ends of an argument."""
        self._check_known([name], self.equations.functions, "unknown function")
        function = self.equations.functions[name].with_ends(axis, _finite(name, lower), _finite(name, upper))
        equations = replace(self.equations, functions={**self.equations.functions, name: function})
        ends = zip(function.end_names(name), function.end_values(), strict=True)
        parameters = {**self.parameters, **{end: Parameter(value) for end, value in ends}}
        return self._changed(equations=equations, parameters=parameters)

    def with_time_shift(self, name: str, shift: Parameter) -> Model:
        """The model with t + ``name`` in place of t, ``name`` being a further parameter."""
        parameters = {**self.parameters, name: shift}
        equations = replace(self.equations, parameters=tuple(parameters), time_shift=name)
        return replace(self, equations=equations, parameters=parameters)

    def _changed(self, **fields: Any) -> Model:
        changed = replace(self, **fields)
        return replace(changed, text=changed.to_toml())

    def _check_known(self, names: Iterable[str], known: Iterable[str], what: str) -> None:
        known = list(known)
        for name in names:
            if name not in known:
                hint = suggestion(name, known) or f"; it has {', '.join(known) or 'none'}."
                raise ModelError(f"{self.name} has no {what} `{name}`{hint}")

    def kernels(self) -> Kernels:
        """The equations as machine code: compiled on first use, kept on disk for the next start."""
        return self.equations.kernels

    def to_toml(self) -> str:
        """The model as a model file."""
        from analysis.model.printing import toml

        return toml(self)

    def to_text(self) -> str:
        """The equations as readable plain text."""
        from analysis.model.printing import plain

        return plain(self)

    def latex_equations(self) -> list[str]:
        """Each equation typeset for TeX or matplotlib's mathtext, without dollar signs."""
        from analysis.model.latex import equations

        return equations(self)

    def to_latex(self) -> str:
        """The equations typeset, one to a line, each between dollar signs."""
        return "\n".join(f"${line}$" for line in self.latex_equations())


def _finite(name: str, value: float) -> float:
    value = float(value)
    if not math.isfinite(value):
        raise ModelError(f"{name} = {value} is not a finite number.")
    return value
