"""The profile likelihood of one parameter of a fit that was made before."""

from __future__ import annotations

from dataclasses import fields, replace

from analysis.base.errors import DataError, ModelError
from analysis.base.identification import Identification
from analysis.base.progress import SILENT, Progress
from analysis.base.record import Record
from analysis.estimate.methods import METHODS, identify, option_types
from analysis.model import Model

_SAME = 0.3  # standard errors by which a fit made again may differ and still be the same


def can_be_profiled(result: Identification) -> str:
    """Why no profile can be traced of this result; empty where one can."""
    return why_not_again(result, "likelihood to trace")


def why_not_again(result: Identification, wanted: str) -> str:
    """Why the fit cannot be made again from its own numbers for what is wanted of it; empty where it can."""
    entry = METHODS.get(result.method)
    if entry is not None and entry.load is None:
        return f"The method {result.method} has no {wanted}."
    if result.method == "select":
        return "The error bars count the choice of terms: identify the equation by itself first."
    if not result.converged:
        return "The fit did not converge: there is no best value to go out from."
    return "" if result.model_text else "The result does not say of which model it is."


def profile_of(
    result: Identification, record: Record, name: str, progress: Progress = SILENT
) -> Identification:
    """The result with the profile likelihood of a parameter: its curve, its interval, and words.

    The fit is made again from its own numbers, with the options it was made with. Where it comes to others,
    the profile would belong to them, and is refused.
    """
    refused = can_be_profiled(result)
    if refused:
        raise DataError(refused)
    model = Model.from_toml(result.model_text)
    if name not in model.free:
        raise ModelError(f"A profile is traced of the model's own parameters; {name} is none.")
    values = {n: v for n, v in result.values().items() if n in model.parameters}
    # a search all over the bounds would only lead back to where it ended
    method = result.method if result.method in METHODS and result.method != "global" else "shooting"
    known = {f.name for kind in option_types(method) for f in fields(kind)}
    options = {key: _tuples(value) for key, value in result.options.items() if key in known}
    again = identify(model.with_values(values), record, method, progress, **{**options, "profile": (name,)})
    if name not in again.profiles:
        raise DataError(next((w for w in again.warnings if "profile" in w), "No profile could be traced."))
    for other in model.free:
        old, new = result.parameters.get(other), again.parameters.get(other)
        if old is not None and new is not None and abs(new.value - old.value) > _SAME * old.stderr:
            raise DataError(
                f"Made again from its own numbers the fit came to {other} = {new.value:.5g} instead of "
                f"{old.value:.5g}: identify again, with the numbers found as guesses."
            )
    return _taken_over(result, again, name)


def _taken_over(result: Identification, again: Identification, name: str) -> Identification:
    """The result with what the fit made again tells of one parameter."""
    old, new = result.parameters[name], again.parameters[name]
    curve, key = again.curves[f"profile of {name}"], f"profile of {name}"
    told = again.profiles[name]
    words = [told.words] if told.words in again.undetermined else []
    better = [w for w in again.warnings if w.startswith(f"A better fit was met at {name} ")]
    return replace(
        result,
        parameters={
            **result.parameters,
            name: replace(old, lower=min(new.lower, old.value), upper=max(new.upper, old.value)),
        },
        curves={**result.curves, key: curve},
        undetermined=[*result.undetermined, *(w for w in words if w not in result.undetermined)],
        warnings=[*result.warnings, *(w for w in better if w not in result.warnings)],
        profiles={**result.profiles, name: told},
    )


def _tuples(value: object) -> object:
    """Options that went through a file have lists for tuples."""
    return tuple(value) if isinstance(value, list) else value
