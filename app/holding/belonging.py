"""Whether fit, record and rig belong together: each refusal is one sentence, before anything moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analysis import DataError

if TYPE_CHECKING:
    from analysis import Identification, Model, Record
    from drivers.rig.profile import RigProfile


def fitted_model(fit: Identification, name: str) -> Model:
    """The model with the values of its fit; ``name``: what the fit is called in a refusal."""
    from analysis import Model

    if not fit.model_text:
        raise DataError(f"{name} does not hold the equations of its model: identify again.")
    if fit.verdict in ("misses", "cannot tell"):
        raise DataError(
            f"The model of {name} does not describe its record (verdict: {fit.verdict}): a loop that "
            "believes it would push the specimen about."
        )
    model = Model.from_toml(fit.model_text)
    return model.with_values({n: v for n, v in fit.values().items() if n in model.parameters})


def shared_channels(profile: RigProfile, model: Model, record: Record) -> tuple[str, ...]:
    """The model's outputs that record and rig both have; the force must be on both, too."""
    on_rig = [c.name for c in profile.channels]
    for name in model.inputs:
        if name not in on_rig:
            raise DataError(f"The rig '{profile.key}' has no channel '{name}', the input of {model.name}.")
    found = tuple(name for name in model.outputs if name in on_rig and name in record)
    if not found:
        raise DataError(
            f"The rig '{profile.key}' measures none of {', '.join(model.outputs)}: {model.name} cannot be "
            "followed on it."
        )
    return found


def check_same_drive(profile: RigProfile, record: Record) -> None:
    """Refuse a record of another rig or drive before anything moves."""
    from drivers.base.waveform import Sine
    from drivers.virtual.specimens import number_of

    drive, made = profile.drive, record.excitation
    if not isinstance(drive, Sine):
        raise DataError(f"The rig '{profile.key}' is not driven by a sine: its motion has no orbits to hold.")
    rig = record.metadata.get("rig")
    if rig is not None and rig != profile.key:
        raise DataError(
            f"The record was made on the rig '{rig}', not on '{profile.key}': its orbits are others."
        )
    number = number_of(profile) if profile.virtual else None
    if number is not None and record.metadata.get("specimen", number) != number:
        raise DataError(
            f"The record is of specimen {record.metadata['specimen']}, this one is {number}: its orbits are "
            "others."
        )
    if made is None or made.phase is None:
        raise DataError("The record does not know the phase of its drive: record it with this rig.")
    if made.frequency is None or made.amplitude is None:
        raise DataError("The record does not know its drive: record it with this rig.")
    if abs(made.frequency / drive.frequency - 1) > 1e-6 or abs(made.amplitude / drive.amplitude - 1) > 1e-3:
        raise DataError(
            f"The record was driven by {made.amplitude:g} at {made.frequency:g} Hz, the rig's drive is "
            f"{drive.amplitude:g} at {drive.frequency:g} Hz: orbits of the one are not those of the other."
        )
