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
    return Model.from_toml(_read(path), source=path.name)


def load_description(name_or_path: str | Path, folder: str) -> tuple[str, str]:
    """Text and file name of a description (such as a beam) by its name in resources or by its path."""
    known = {p.stem: p for p in sorted((Path(str(files("resources"))) / folder).glob("*.toml"))}
    wanted = str(name_or_path)
    path = known.get(wanted, Path(wanted))
    if path.suffix != ".toml" and not path.is_file():
        raise ModelError(f"No description `{wanted}`: there are {', '.join(known)}, or give a file.")
    from drivers.formats.measured_responses import with_responses

    return with_responses(_read(path), path.parent, path.name), path.name


def _read(path: Path) -> str:
    try:
        return read_text(path, "a model")
    except DataError as error:
        raise ModelError(str(error)) from None
