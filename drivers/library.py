"""The library of models: files in resources/models, found by name, or any model file by its path."""

from __future__ import annotations

from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from analysis import DataError, Model, ModelError
from drivers.base.files import read_text


def model_files() -> dict[str, Path]:
    """The library's model files by name, in alphabetical order."""
    folder = Path(str(files("resources"))) / "models"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def load_model(name_or_path: str | Path) -> Model:
    """A model by its name in the library or by the path of a model file."""
    wanted = str(name_or_path)
    known = model_files()
    path = known.get(wanted, Path(wanted))
    if path.suffix != ".toml" and not path.is_file():
        close = get_close_matches(wanted, known, 1, 0.5)
        hint = f"did you mean `{close[0]}`?" if close else f"the library has {', '.join(known)}."
        raise ModelError(f"No model `{wanted}`: {hint}")
    return Model.from_toml(read_description(path), source=path.name)


def read_description(path: Path) -> str:
    """The text of a model or of another description."""
    try:
        return read_text(path, "a model")
    except DataError as error:
        raise ModelError(str(error)) from None
