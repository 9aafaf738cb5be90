"""A short walk through the window for the first visit; it can be left at any step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout

from app.desktop.widgets.basics import IconButton, button, label

if TYPE_CHECKING:
    from app.desktop.window import MainWindow


@dataclass(frozen=True)
class Step:
    """One stop of the tour."""

    page: str
    title: str
    text: str


STEPS = (
    Step("acquire", "A rig is already shaking",
         "This is a virtual steel beam between two magnets, driven at 7.5 Hz. The signals are live. "
         "Esc, F12 or the red button stop the shaker at any moment, from any page."),
    Step("acquire", "Record a minute",
         "Press Record, let it run for half a minute or more, then press “Stop and save”. "
         "Every sample is on disk within a second, whatever happens to this window."),
    Step("recordings", "Your runs are kept here",
         "Everything you record is listed here. The record in hand, which the next pages work on, is named "
         "at the top; “Use this record” takes another one. Files of other programs can be dropped here."),
    Step("embed", "See the motion",
         "One signal of the record in hand and its own past draw the motion as a shape. A good delay is "
         "suggested; drag it."),
    Step("orbits", "Find the hidden orbits",
         "Press “Find orbits”. A chaotic motion almost repeats itself again and again. "
         "Each near-repeat is a periodic orbit."),
    Step("identify", "Fit the equation",
         "The model that belongs to the rig is chosen already. Press Identify and watch its parameters "
         "settle, with error bars."),
    Step("validate", "Does the model move like the beam?",
         "Model and measurement side by side: motion, section, exponents."),
    Step("report", "Take it home",
         "Press “Write the report”: one file with every figure, table and number needed to repeat the work."),
)  # fmt: skip


class Tour(QFrame):
    """A card in the corner of the window with one step at a time."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self.window_, self.index = window, 0
        theme = window.theme
        self.setObjectName("tour")
        self.setFixedWidth(theme.px(300))
        box = QVBoxLayout(self)
        box.setContentsMargins(theme.px(18), theme.px(14), theme.px(18), theme.px(14))
        box.setSpacing(theme.px(8))
        self.title, self.text = label("", "heading", wrap=True), label("", "", wrap=True)
        self.count = label("", "small")
        self.leave = IconButton(
            theme, "close", "Leave the tour; the question mark at the lower left brings it back"
        )
        self.leave.clicked.connect(self.end)
        head = QHBoxLayout()
        head.addWidget(self.title, 1)
        head.addWidget(self.leave, 0, Qt.AlignmentFlag.AlignTop)
        box.addLayout(head)
        box.addWidget(self.text)
        row = QHBoxLayout()
        row.addWidget(self.count, 1)
        self.back = button("Back", lambda: self.go(-1), "One step back")
        self.next = button("Next", lambda: self.go(1), "Next step", "primary")
        for part in (self.back, self.next):
            row.addWidget(part)
        box.addLayout(row)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    @classmethod
    def start(cls, window: MainWindow) -> Tour:
        """Begin at the first step; a tour under way starts again."""
        if window.tour is not None:
            window.tour.close()
        window.tour = cls(window)
        window.tour.show_step()
        window.tour.show()
        return window.tour

    def go(self, by: int) -> None:
        self.index += by
        if self.index >= len(STEPS):
            self.end()
        else:
            self.show_step()

    def show_step(self) -> None:
        step = STEPS[self.index]
        self.window_.show_page(step.page)
        self.title.setText(step.title)
        self.text.setText(step.text)
        self.count.setText(f"{self.index + 1} of {len(STEPS)}")
        self.back.setVisible(self.index > 0)
        self.next.setText("Done" if self.index == len(STEPS) - 1 else "Next")
        self.place()

    def place(self) -> None:
        """Always at the lower left, over the empty foot of the stages; clear of STOP and of a message."""
        window, margin = self.window_, self.window_.theme.px(14)
        box = self.layout()
        assert box is not None
        box.activate()
        self.setFixedHeight(box.totalHeightForWidth(self.width()))  # adjustSize forgets the last line
        lift = window.notice.height() if window.notice.isVisible() else 0
        floor = window.height() - 3 * margin - lift
        self.move(margin // 2, floor - self.height())
        self.raise_()

    def end(self) -> None:
        self.window_.bench.settings.tour_done = True
        self.window_.tour = None
        self.close()
