"""A logo for the head of a report: any PNG or JPEG picture, made small."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from analysis import DataError

WIDEST, HIGHEST = 900, 300  # pixels that are kept of it
LARGEST = 20_000_000  # bytes of the file


def read_logo(path: Path | str) -> bytes:
    """The picture as PNG; one sentence for what is none."""
    from matplotlib.image import imread, imsave

    path = Path(path)
    try:
        if path.stat().st_size > LARGEST:
            raise DataError(f"{path.name} is too large for a logo: at most {LARGEST // 1_000_000} MB.")
        pixels = imread(path)
    except (OSError, ValueError, SyntaxError) as error:
        why = getattr(error, "strerror", None)
        raise DataError(f"{path.name} cannot be used as a logo: {why or 'it is no PNG or JPEG'}.") from None
    step = max(1, -(-pixels.shape[1] // WIDEST), -(-pixels.shape[0] // HIGHEST))
    target = BytesIO()
    imsave(target, pixels[::step, ::step], format="png", cmap="gray")
    return target.getvalue()
