"""Asking before the rig in use is let go while its shaker moves or a recording is made."""

from __future__ import annotations

from PyQt6.QtWidgets import QMessageBox, QWidget

from app.desktop.rigdesk import RigDesk
from app.desktop.widgets.basics import sentence


def may_leave_rig(rig: RigDesk, parent: QWidget, question: str = "Open another rig?") -> bool:
    """Whether the rig may be let go; asks if that ends a drive, a recording or a sequence."""
    status = rig.drive_status()
    running = [
        f"the shaker plays {sentence(status.text)}" if status.driving else "",
        "a recording is being made" if rig.recording else "",
        "a sequence is running" if rig.sequencer.running else "",
    ]
    words = " and ".join(part for part in running if part)
    if not words:
        return True
    box = QMessageBox(parent)
    box.setObjectName("leave rig")
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle("Another rig")
    box.setText(f"{words[0].upper()}{words[1:]}. {question}")
    box.setInformativeText("The drive ramps to zero first; what was recorded is saved.")
    box.addButton("Stop and open", QMessageBox.ButtonRole.AcceptRole)
    stay = box.addButton("Stay here", QMessageBox.ButtonRole.RejectRole)
    box.setDefaultButton(stay)
    box.setEscapeButton(stay)
    box.exec()
    box.deleteLater()
    return box.clickedButton() is not stay
