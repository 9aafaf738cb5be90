"""From the tables of a model file to a model, with every rule checked and every complaint placed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, NoReturn

from analysis.model import grammar
from analysis.model.document import Document
from analysis.model.equations import Equations, Implicit, ResolutionError, suggestion
from analysis.model.functions import (
    FEWEST,
    MOST,
    MOST_COEFFICIENTS,
    USUAL,
    USUAL_OF_TWO,
    Function,
    Spline,
    Surface,
)
from analysis.model.grammar import NAME, RESERVED, Expression, ExpressionError
from analysis.model.model import Initial, Model, Parameter

TABLES = ("states", "inputs", "parameters", "initial", "definitions", "outputs", "units")
WORDS = ("name", "description", "reference")
MAX_STATES = 400
MAX_NAMES = 2000

Path = tuple[str, ...]


def from_tables(data: dict[str, Any], source: str) -> Model:
    """A model from tables made in code; its text is the model file that says the same."""
    plain = {key: _plain(value) if isinstance(value, Mapping) else value for key, value in data.items()}
    made = model(Document(source, "", plain))
    return made._changed()


def _plain(table: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Parameter | Initial):
            fields = asdict(value)
            value = {"guess" if fields.pop("free") else "value": fields.pop("value")}
            value.update({k: v for k, v in fields.items() if v != "" and not _infinite(v)})
        elif isinstance(value, Mapping):
            value = dict(value)
        elif not isinstance(value, str | bool | int | float):
            value = float(value)  # a NumPy scalar
        result[name] = value
    return result


def _pair(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _infinite(value: object) -> bool:
    return isinstance(value, float) and math.isinf(value)


def model(document: Document) -> Model:
    """The model that the document describes, or ModelError."""
    return _Reader(document).model()


class _Reader:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.data = document.data

    def fail(self, message: str, *path: str, offset: int | None = None) -> NoReturn:
        raise self.document.error(message, path, offset)

    def model(self) -> Model:
        self.check_top_level()
        words = {key: self.word(key) for key in WORDS}
        states = {name: self.expression("states", name) for name in self.table("states")}
        if not states:
            self.fail('a model needs a [states] table with at least one equation, such as x = "v"')
        if len(states) > MAX_STATES:
            self.fail(f"{len(states)} states are more than the {MAX_STATES} allowed", "states")
        self.check_names()
        driven, measured = self.inputs()
        functions = self.functions()
        definitions = {name: self.definition(name, functions) for name in self.table("definitions")}
        outputs = {name: self.expression("outputs", name) for name in self.table("outputs")}
        parameters = {name: self.parameter(name) for name in self.table("parameters")}
        # a coefficient that the file does not have is sought from zero
        for name, spline in functions.items():
            for coefficient in spline.coefficients(name):
                parameters.setdefault(coefficient, Parameter(0.0, free=True))
            for end, value in zip(spline.end_names(name), spline.end_values(), strict=True):
                parameters[end] = Parameter(value)
        equations = Equations(
            states=states,
            measured=measured,
            driven=driven,
            parameters=tuple(parameters),
            definitions=definitions,
            outputs=outputs or {name: grammar.parse(name) for name in states},
            functions=functions,
        )
        self.check_equations(equations)
        return Model(
            name=words["name"] or self.document.source,
            equations=equations,
            parameters=parameters,
            initial=self.initial(states),
            units=self.units(equations),
            description=words["description"],
            reference=words["reference"],
            text=self.document.text,
        )

    def check_top_level(self) -> None:
        for key, value in self.data.items():
            if key in TABLES:
                if not isinstance(value, dict):
                    self.fail(f"`{key}` must be a table: write [{key}]", key)
            elif key not in WORDS:
                hint = suggestion(key, (*TABLES, *WORDS)) or f"; known are {', '.join((*WORDS, *TABLES))}"
                self.fail(f"unknown {'table' if isinstance(value, dict) else 'key'} `{key}`{hint}", key)

    def table(self, key: str) -> dict[str, Any]:
        table: dict[str, Any] = self.data.get(key, {})
        return table

    def word(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str):
            self.fail(f"`{key}` must be a text in quotes", key)
        return " ".join(value.split()) if key == "name" else value.strip()

    def check_names(self) -> None:
        """Each name means one thing; outputs may bear the name of what they show."""
        owner: dict[str, str] = {}
        for table in ("states", "inputs", "parameters", "definitions"):
            for name in self.table(table):
                self.check_name(table, name)
                if name in owner:
                    self.fail(f"`{name}` is already in [{owner[name]}]; choose another name", table, name)
                owner[name] = table
        for name in self.table("outputs"):
            self.check_name("outputs", name)
        if len(owner) > MAX_NAMES:
            self.fail(f"the model has more than {MAX_NAMES} names")

    def check_name(self, table: str, name: str) -> None:
        if not NAME.match(name) or len(name) > 100:
            self.fail(f"`{name[:100]}` is not a name: use letters, digits and `_`", table, name)
        if name in RESERVED:
            self.fail(f"`{name}` has a meaning of its own in expressions; choose another name", table, name)

    def expression(self, *path: str) -> Expression:
        value: Any = self.data
        for key in path:
            value = value[key]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.fail(f'`{path[-1]}` must be an expression in quotes, such as "-k*x"', *path)
        try:
            return grammar.parse(value if isinstance(value, str) else repr(value))
        except ExpressionError as error:
            self.fail(error.message, *path, offset=error.offset)

    def inputs(self) -> tuple[dict[str, Expression], tuple[str, ...]]:
        driven: dict[str, Expression] = {}
        measured: list[str] = []
        for name, value in self.table("inputs").items():
            if isinstance(value, str) and value.strip() == "measured":
                measured.append(name)
            else:
                driven[name] = self.expression("inputs", name)
        return driven, tuple(measured)

    def functions(self) -> dict[str, Function]:
        """The definitions that are unknown functions."""
        found: dict[str, Function] = {}
        for name, value in self.table("definitions").items():
            if not isinstance(value, dict) or "function" not in value:
                continue
            path = ("definitions", name)
            self.check_keys(value, ("function", "knots", "lower", "upper"), path)
            if ("lower" in value) != ("upper" in value):
                self.fail("give both lower and upper, or neither", *path)
            if isinstance(value["function"], list | tuple):
                found[name] = self.surface(value, path)
            else:
                self.expression(*path, "function")
                found[name] = self.spline(value, USUAL, path)
            self.check_coefficients(name, found[name])
        return found

    def surface(self, value: dict[str, Any], path: Path) -> Surface:
        """A function of two arguments; every key but the arguments may be one number for both."""
        arguments = value["function"]
        if len(arguments) != 2 or not all(isinstance(text, str) for text in arguments):
            self.fail('a function has one argument or two, such as function = ["x", "v"]', *path, "function")
        axes = []
        for i, argument in enumerate(arguments):
            own = {key: given[i] if _pair(given) else given for key, given in value.items()}
            try:
                grammar.parse(argument)
            except ExpressionError as error:
                self.fail(error.message, *path, "function")
            axes.append(self.spline({**own, "function": argument}, USUAL_OF_TWO, path))
        surface = Surface((axes[0], axes[1]))
        if arguments[0] == arguments[1]:
            self.fail("the two arguments of a function must differ", *path, "function")
        if (count := len(surface.coefficients(""))) > MOST_COEFFICIENTS:
            message = f"these knots make {count} coefficients, more than the {MOST_COEFFICIENTS} allowed"
            self.fail(message, *path, "knots")
        return surface

    def spline(self, value: dict[str, Any], usual: int, path: Path) -> Spline:
        knots = self.number(value.get("knots", usual), *path, "knots")
        if knots != int(knots) or not FEWEST <= knots <= MOST:
            self.fail(f"`knots` is a whole number from {FEWEST} to {MOST}", *path, "knots")
        lower, upper = (
            self.number(value[key], *path, key) if key in value else None for key in ("lower", "upper")
        )
        if lower is not None and upper is not None and not lower < upper:
            self.fail(f"lower = {lower:g} must be below upper = {upper:g}", *path, "lower")
        return Spline(str(value["function"]), int(knots), lower, upper)

    def check_coefficients(self, name: str, function: Function) -> None:
        taken = {n for t in ("states", "inputs", "definitions") for n in self.table(t)}
        wrong = [n for n in function.coefficients(name) if n in taken]
        wrong += [n for n in function.helpers(name) if n in taken or n in self.table("parameters")]
        wrong += [n for n in function.end_names(name) if n in taken or n in self.table("parameters")]
        if wrong:
            message = f"`{wrong[0]}` belongs to the function `{name}`; choose another name"
            self.fail(message, "definitions", name)

    def definition(self, name: str, functions: Mapping[str, Function]) -> Expression | Implicit:
        value = self.table("definitions")[name]
        if not isinstance(value, dict):
            return self.expression("definitions", name)
        path = ("definitions", name)
        if name in functions:
            try:
                return grammar.parse(functions[name].text(name))
            except ExpressionError:
                self.fail("the argument of this function is too long: define it by a name", *path)
        self.check_keys(value, ("solve", "lower", "upper"), path)
        for key in ("solve", "lower", "upper"):
            if key not in value:
                self.fail(f'`{name}` needs {{ solve = "...", lower = ..., upper = ... }}', *path)
        lower, upper = (self.number(value[key], *path, key) for key in ("lower", "upper"))
        if not lower < upper:
            self.fail(f"lower = {lower:g} must be below upper = {upper:g}", *path, "lower")
        return Implicit(self.expression(*path, "solve"), lower, upper)

    def check_keys(self, table: dict[str, Any], known: tuple[str, ...], path: Path) -> None:
        for key in table:
            if key not in known:
                hint = suggestion(key, known) or f"; known are {', '.join(known)}"
                self.fail(f"unknown key `{key}`{hint}", *path, key)

    def number(self, value: Any, *path: str) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fail(f"`{path[-1]}` must be a number", *path)
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(f"`{path[-1]}` is not a finite number", *path)
        return number

    def parameter(self, name: str) -> Parameter:
        path = ("parameters", name)
        value = self.table("parameters")[name]
        if not isinstance(value, dict):
            return Parameter(self.number(value, *path))
        self.check_keys(value, ("value", "guess", "lower", "upper", "unit"), path)
        number, free, lower, upper = self.valued(value, path)
        unit = value.get("unit", "")
        if not isinstance(unit, str):
            self.fail("`unit` must be a text in quotes", *path, "unit")
        return Parameter(number, lower, upper, unit, free)

    def valued(self, value: dict[str, Any], path: Path) -> tuple[float, bool, float, float]:
        """Value or guess, with bounds."""
        name = path[-1]
        if ("value" in value) == ("guess" in value):
            reason = "both value and guess" if "value" in value else "neither value nor guess"
            self.fail(f"`{name}` has {reason}: write value if it is known, guess to identify it", *path)
        key = "guess" if "guess" in value else "value"
        number = self.number(value[key], *path, key)
        lower = self.number(value["lower"], *path, "lower") if "lower" in value else -math.inf
        upper = self.number(value["upper"], *path, "upper") if "upper" in value else math.inf
        if not lower < upper:
            self.fail(f"lower = {lower:g} must be below upper = {upper:g}", *path, "lower")
        if not lower <= number <= upper:
            self.fail(f"{key} = {number:g} is outside its bounds {lower:g} to {upper:g}", *path, key)
        return number, key == "guess", lower, upper

    def initial(self, states: Mapping[str, Expression]) -> dict[str, Initial]:
        found: dict[str, Initial] = {}
        for name, value in self.table("initial").items():
            path = ("initial", name)
            if name not in states:
                hint = suggestion(name, states) or f"; the states are {', '.join(states)}"
                self.fail(f"`{name}` is not a state{hint}", *path)
            if isinstance(value, dict):
                self.check_keys(value, ("value", "guess", "lower", "upper"), path)
                found[name] = Initial(*self.valued(value, path))
            else:
                found[name] = Initial(self.number(value, *path))
        return {name: found[name] for name in states if name in found}

    def units(self, equations: Equations) -> dict[str, str]:
        known = [*equations.states, *equations.measured, *equations.named(), *equations.outputs]
        for name, unit in self.table("units").items():
            if name in equations.parameters:
                self.fail(
                    f"the unit of the parameter `{name}` belongs to its entry in [parameters]", "units", name
                )
            if name not in known:
                hint = suggestion(name, known) or f"; known are {', '.join(known)}"
                self.fail(f"unknown name `{name}`{hint}", "units", name)
            if not isinstance(unit, str):
                self.fail(f"the unit of `{name}` must be a text in quotes", "units", name)
        return dict(self.table("units"))

    def check_equations(self, equations: Equations) -> None:
        """Resolve every name, and keep inputs apart from states."""
        try:
            system = equations.system
        except ResolutionError as error:
            self.fail(error.message, *error.place, offset=error.offset)
        states = set(equations.states) | set(equations.measured)
        for name in equations.driven:
            touched = states & system.graph.symbols(system.closure([system.nodes[name]]))
            if touched:
                self.fail(
                    f"the input `{name}` uses `{sorted(touched)[0]}`; an input depends on t and parameters "
                    "only, so move it to [definitions]",
                    "inputs",
                    name,
                )
