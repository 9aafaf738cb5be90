"""The page about the command line says what the parsers say."""

import re

from app.cli import COMMANDS
from docs.command_line import PAGE, page


def test_given_the_page_when_compared_with_the_parsers_then_nothing_in_it_is_stale():
    kept = PAGE.read_text(encoding="utf-8")
    made = page()
    commands = re.findall(r"^## (.+)$", kept, re.MULTILINE)
    assert set(commands) <= set(COMMANDS)
    assert {"demo", "identify", "report", "acquire"} <= set(commands)
    for option in re.findall(r"^\| `(--[a-z-]+)", kept, re.MULTILINE):
        assert f"`{option}" in made
