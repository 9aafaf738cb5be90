"""Progress and cancellation of long work, without knowing who watches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from analysis.base.errors import Cancelled


@dataclass(frozen=True)
class Step:
    """One report of progress."""

    fraction: float  # of the whole work, 0 to 1
    message: str
    values: Mapping[str, float] = field(default_factory=dict)  # such as cost, lambda and parameters by name


@dataclass
class Progress:
    """What long work reports to. Both callbacks are optional and must be cheap.

    ``report`` raises :class:`Cancelled` when the watcher asks for it, so work that reports often can always
    be stopped.
    """

    on_step: Callable[[Step], None] | None = None
    cancelled: Callable[[], bool] | None = None
    _lower: float = 0.0
    _upper: float = 1.0

    def report(self, fraction: float, message: str, **values: float) -> None:
        """Tell the watcher how far the work is; raise Cancelled if it should end."""
        if self.cancelled is not None and self.cancelled():
            raise Cancelled("Cancelled.")
        if self.on_step is not None:
            scaled = self._lower + (self._upper - self._lower) * min(max(fraction, 0.0), 1.0)
            self.on_step(Step(scaled, message, values))

    def part(self, lower: float, upper: float) -> Progress:
        """A progress whose 0..1 is the part lower..upper of this one."""
        width = self._upper - self._lower
        return Progress(
            self.on_step, self.cancelled, self._lower + lower * width, self._lower + upper * width
        )


SILENT = Progress()
