"""The virtual specimen on the shaker: its number, and what it really is for those who have measured it."""

from __future__ import annotations

from PyQt6.QtWidgets import QHBoxLayout, QWidget

from app.desktop.widgets.basics import button, label
from app.desktop.widgets.leaverig import may_leave_rig
from app.desktop.workbench import Workbench
from drivers.rig.profile import RigProfile
from drivers.virtual.specimens import new_number, number_of, scatters, true_parameters


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
        """Say what the parameters are, beside those that were found."""
        profile = self._profile
        if profile is None:
            return
        truth, scattered = true_parameters(profile), scatters(profile)
        found = {} if self.bench.result is None else self.bench.result.parameters
        words = []
        for name in scattered:
            text = f"{name} = {truth[name]:.5g}"
            if name in found:
                text += f" (found {found[name].value:.5g} ± {found[name].stderr:.1g})"
            words.append(text)
        self.words.setText(f"Specimen {number_of(profile)}: " + ", ".join(words) + ".")
        self.reveal_button.setEnabled(False)

    def renew(self) -> None:
        """Open the rig again with another specimen."""
        if may_leave_rig(self.bench.rig, self):
            self.bench.rig.specimen = new_number()
            self.bench.rig.open(self.bench.rig.name)
