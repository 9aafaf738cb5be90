"""Lines of a report's page."""

from __future__ import annotations

from app.report.pdf import _width, _wrapped

SIZE, WEIGHT, FAMILY, PAGE = 9.0, "normal", "DejaVu Sans", 3.0


def test_given_words_wider_than_the_page_then_every_line_fits_and_nothing_is_lost() -> None:
    """A name of thousands of letters took minutes: each line was looked for letter by letter from the end."""
    text = f"a title {5000 * '0'} and {'W' * 90}/{'i' * 300} end"
    lines = _wrapped(text, SIZE, WEIGHT, PAGE, FAMILY)
    assert all(_width(line, SIZE, WEIGHT, FAMILY) <= PAGE for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    full = [line for line in lines if set(line) == {"0"}][1:-1]
    assert all(_width(line + "0", SIZE, WEIGHT, FAMILY) > PAGE for line in full)
    assert _wrapped("", SIZE, WEIGHT, PAGE, FAMILY) == [""]
