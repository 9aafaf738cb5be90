"""The stages of the work in the order of the sidebar. A page is imported when it is first shown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.desktop.page import Page
    from app.desktop.workbench import Workbench


@dataclass(frozen=True)
class Stage:
    """One entry of the sidebar. Its page is the class ``<Key>Page`` of the module of the same name."""

    key: str  # also the module's name and the icon's
    title: str
    help: str  # what one does here, in one plain sentence

    @property
    def _module(self) -> str:
        return f"app.desktop.pages.{self.key}"

    @property
    def loaded(self) -> bool:
        """Whether its page can be built without loading anything."""
        return self._module in sys.modules

    def load(self) -> ModuleType:
        return import_module(self._module)

    def build(self, bench: Workbench) -> Page:
        module = self.load()
        page: Page = getattr(module, f"{self.key.capitalize()}Page")(bench)
        return page


STAGES = (
    Stage("rig", "Rig", "Choose the test rig, check its sensors, and let it test itself."),
    Stage("acquire", "Acquire", "Drive the shaker, watch the sensors live, and record."),
    Stage(
        "recordings",
        "Recordings",
        "Find, import, replay and trim recordings; raw data never change.",
    ),
    Stage("response", "Response", "See how the specimen answers its drive, and how nonlinear it is."),
    Stage("embed", "Embed", "Rebuild the motion's phase space from one measured signal."),
    Stage("orbits", "Orbits", "Find the periodic orbits hidden in a chaotic record."),
    Stage("identify", "Identify", "Choose or write an equation of motion and fit it."),
    Stage("validate", "Validate", "Put the fitted model beside the measurement."),
    Stage("report", "Report", "Collect figures, tables and everything needed to repeat the work."),
)
