"""What a converter can be: shared by the virtual sensors and the virtual loop."""

from __future__ import annotations

from drivers.base.protocols import InstrumentError

MOST_BITS = 64


def check_bits(whose: str, bits: int) -> None:
    """One sentence for a number of bits that no converter has."""
    if isinstance(bits, bool) or not isinstance(bits, int) or not 1 <= bits <= MOST_BITS:
        raise InstrumentError(f"{whose} has a whole number of bits from 1 to {MOST_BITS}, not {bits!r}.")
