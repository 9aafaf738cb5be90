"""The verdict on a fit, above its numbers: whether the model fits the data, and why one may say so.

That the search converged is no verdict and gets no colour.
"""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import QSize, Qt
from PyQt6.QtWidgets import QFrame, QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout

from analysis import Identification
from app.desktop.icons import icon
from app.desktop.theme import Theme
from app.desktop.widgets.basics import label, sentence, set_role

# words, picture, colour of the theme; a picture for each, so that colour is never the only sign
VERDICTS = {
    "fits": ("The model fits the data", "check", "good"),
    "close": ("Close: the model fits but for a small part", "help", "warn"),
    "misses": ("The model misses the data: do not use these numbers", "close", "bad"),
    "cannot tell": ("The data cannot tell: do not use these numbers", "warning", "warn"),
    "": ("Not judged", "help", "muted"),
}
SHOWN = 3  # reasons; all of them are in the tooltip


class VerdictBanner(QFrame):
    """One line in the colour of the verdict, its reasons below; grey when it is of something earlier."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("banner_none")
        self.verdict = ""
        self._colour_name = "muted"
        self._reasons: tuple[str, ...] = ()
        self._shown = SHOWN
        self._picture = QLabel()
        self._name = "help"
        self.title, self.reasons = label("", "heading", wrap=True), label("", "small", wrap=True)
        for text in (self.title, self.reasons):
            text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
            text.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        words = QVBoxLayout()
        words.setSpacing(theme.px(2))
        words.addWidget(self.title)
        words.addWidget(self.reasons)
        row = QHBoxLayout(self)
        row.setContentsMargins(theme.px(12), theme.px(7), theme.px(12), theme.px(7))
        row.setSpacing(theme.px(10))
        row.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        theme.changed.connect(self._colour)
        self.hide()

    def show_result(self, result: Identification, earlier: str = "") -> None:
        """The verdict on a fit; ``earlier``: what it belongs to, if that is no longer in view."""
        reasons = list(result.reasons)
        verdict = result.verdict
        if not result.converged:
            reasons.insert(
                0, "The search did not converge: try better guesses, fewer unknowns or another method."
            )
            verdict = verdict if verdict == "misses" else "cannot tell"
        self.show_verdict(verdict, reasons, earlier)

    def show_verdict(self, verdict: str, reasons: Sequence[str], earlier: str = "") -> None:
        """``verdict``: fits, close, misses, cannot tell, or empty."""
        self.verdict = verdict
        self._reasons = tuple(reasons)
        words, self._name, self._colour_name = VERDICTS.get(verdict, VERDICTS[""])
        if earlier:
            words, self._colour_name = f"Of {earlier}: {words[0].lower()}{words[1:]}", "muted"
        self.title.setText(words)
        self.show_reasons(self._shown)
        self.setToolTip("\n".join(reasons))
        self.setAccessibleName(". ".join([words, *reasons]))
        set_role(self, f"banner_{'none' if earlier else verdict.replace(' ', '_') or 'none'}")
        self._colour()
        self.show()

    def show_reasons(self, count: int) -> None:
        """Show so many of the reasons; the tooltip has them all."""
        self._shown = count
        self.reasons.setText(sentence("\n".join(self._reasons[:count])))
        self.reasons.setVisible(bool(self._reasons))

    def _colour(self) -> None:
        side = self._theme.px(20)
        colour = getattr(self._theme.colours, self._colour_name)
        self._picture.setPixmap(icon(self._name, colour).pixmap(QSize(side, side)))
