"""What somebody else's code raised, in words that can be shown in one line."""

from __future__ import annotations

from analysis import ShakedownError

LONGEST = 300  # characters of an exception's own text


def in_words(error: BaseException) -> str:
    """Kind and text of an exception, such as "ValueError: no such port"; never raises.

    One of ours is a sentence already and needs no kind.
    """
    kind = type(error).__name__
    try:
        text = " ".join(str(error).split())
    except Exception:  # its own ``__str__`` fails
        return f"{kind}, which has no text"
    if len(text) > LONGEST:
        text = text[:LONGEST] + " ..."
    if isinstance(error, ShakedownError):
        return text
    return f"{kind}: {text}" if text else kind
