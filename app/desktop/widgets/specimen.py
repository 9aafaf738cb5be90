"""The virtual specimen on the shaker: its number, and what it really is for those who have measured it."""

from __future__ import annotations

from PyQt6.QtWidgets import QHBoxLayout, QWidget

from analysis import Estimate, Identification, with_bounds, with_error
from app.desktop.widgets.basics import button, label, sentence
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.workbench import Workbench
from drivers.rig.profile import RigProfile, load_rig
from drivers.virtual.specimens import new_number, number_of, scatters, true_parameters, with_specimen


class SpecimenLine(QWidget):
    """One line under a virtual rig that is open: reveal its parameters, or take another specimen."""

    def __init__(self, bench: Workbench) -> None:
        super().__init__()
        self.bench = bench
        self._beside = bench.rig.name  # rig that is chosen in the list
        self.words = label("", "small", wrap=True)
        self.reveal_button = button(
            "Reveal", self.reveal, "Show what the parameters of this specimen really are"
        )
        self.new_button = button("New specimen", self.renew, "Clamp a specimen that nobody has seen yet")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(bench.theme.px(8))
        row.addWidget(self.words, 1)
        row.addWidget(self.reveal_button)
        row.addWidget(self.new_button)
        bench.rig.opened.connect(self.follow)
        bench.rig.closed.connect(self.follow)
        self.follow()

    @property
    def _profile(self) -> RigProfile | None:
        rig = self.bench.rig.rig
        return rig.profile if rig is not None else None

    def show_rig(self, name: str) -> None:
        """Only beside the rig that it is clamped to."""
        self._beside = name
        self.follow()

    def follow(self) -> None:
        """Show the specimen of the rig that is open now; nothing where there is none to guess."""
        profile = self._profile
        number = 0 if profile is None or self.bench.rig.name != self._beside else number_of(profile)
        self.setVisible(number > 0)
        if number == 0 or profile is None:
            return
        self.words.setText(
            f"Specimen {number}: nobody knows its parameters. Identify it, then see how close you came."
        )
        self.reveal_button.setEnabled(True)

    def reveal(self) -> None:
        """Say what the parameters are, beside those that were found from this specimen."""
        profile = self._profile
        if profile is None:
            return
        number, fit = number_of(profile), self._fit_of_rig()
        found: dict[str, Estimate] = {}
        which = f"Specimen {number}"
        if fit is not None:
            result, measured = fit
            found = result.parameters
            if measured != number:  # clamped in another session: its own truth, not that of this one
                profile, which = self._clamped(measured), f"Specimen {measured}, which the fit in hand is of"
        truth = true_parameters(profile)
        told = [_beside(name, truth[name], found.get(name)) for name in scatters(profile)]
        self.words.setText(sentence(f"{which}: {'; '.join(told)}."))
        self.reveal_button.setEnabled(False)

    def _fit_of_rig(self) -> tuple[Identification, int] | None:
        """The fit in hand and the number of the specimen that it is of; None for one of anything else."""
        result, record = self.bench.result, self.bench.fitted
        if result is None or record is None:
            return None
        about = record.record.metadata
        number = about.get("specimen")
        return (
            (result, number) if about.get("rig") == self.bench.rig.name and isinstance(number, int) else None
        )

    def _clamped(self, number: int) -> RigProfile:
        return with_specimen(load_rig(self.bench.rig.name), number)

    def renew(self) -> None:
        """Open the rig again with another specimen."""
        if may_leave_rig(self.bench.rig, self):
            self.bench.rig.specimen = new_number()
            self.bench.rig.open(self.bench.rig.name)


def _firm(text: str) -> str:
    """Words that no line is broken in."""
    return text.replace(" ", "\u00a0")


def _beside(name: str, truth: float, found: Estimate | None) -> str:
    """A true value, with as many digits as the found one beside it."""
    if found is None or not found.stderr > 0:
        return _firm(f"{name} = {truth:.5g}")
    value, _, _ = with_bounds(truth, found.stderr, found.stderr)
    return f"{_firm(f'{name} = {value}')} ({_firm(f'found {with_error(found)}')})"
