"""Method ``auto``: the method that suits the data, and why it was chosen.

Every state measured (or a velocity that follows from its displacement): the weak form, finished by maximum
likelihood. A state that nothing shows: homotopy where it is at hand, else maximum likelihood from the
model's own guesses. A method that cannot or does not converge hands over to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from analysis.base.errors import Cancelled, ShakedownError
from analysis.base.identification import Identification
from analysis.base.progress import Progress
from analysis.base.record import Record
from analysis.estimate.methods import METHODS
from analysis.estimate.methods import identify as identify_by
from analysis.experiment import Experiment
from analysis.experiment.states import state_samples

if TYPE_CHECKING:
    from analysis.model import Model


@dataclass(frozen=True)
class Options:
    """Options of the automatic choice."""

    per_record: tuple[str, ...] = ()  # parameters with a value of their own in each record
    finish: bool = True  # end with maximum likelihood over the path


def identify(model: Model, records: Sequence[Record], options: Options, progress: Progress) -> Identification:
    """Choose, identify, and say in ``extra["chosen"]`` what was chosen and why."""
    seen = Experiment(model, records)
    samples = state_samples(seen.model, seen.runs[0], seen.model.values(), smoothed=False)
    hidden = [s for i, s in enumerate(model.states) if not samples.seen[i] and i not in samples.derived]
    if hidden:
        order = ["homotopy", "path"]
        reason = f"nothing measures {', '.join(hidden)}"
    else:
        order = ["weak", "path", "homotopy"]
        reason = "every state is measured or follows from one that is"
    failures: list[str] = []
    result: Identification | None = None
    for name in (m for m in order if m in METHODS):
        try:
            result = identify_by(model, records, name, progress, **_options(name, options))
        except Cancelled:
            raise
        except ShakedownError as error:
            failures.append(f"{name} could not: {error}")
            continue
        if result.converged:
            break
        failures.append(f"{name} did not converge")
    if result is None:
        raise ShakedownError(" ".join(failures))
    chosen = f"{result.method}, because {reason}" + "".join(f"; {f}" for f in failures) + "."
    return replace(result, extra={**result.extra, "chosen": chosen})


def _options(name: str, options: Options) -> dict[str, object]:
    chosen: dict[str, object] = {}
    if options.per_record and name in ("weak", "path"):
        chosen["per_record"] = options.per_record
    if name == "weak":
        chosen["finish"] = options.finish
    return chosen
