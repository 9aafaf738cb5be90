"""Options in the text of the manual: `--json` is not parted at its hyphens (a hook of MkDocs)."""

from __future__ import annotations

import re

CODE = re.compile(r"<code>([^<]*)</code>")
OPTION = re.compile(r"(?<!\S)--?\w\S*")


def on_page_content(content: str, **_: object) -> str:
    """Called by MkDocs with the HTML of each page."""

    def kept(match: re.Match[str]) -> str:
        return f"<code>{OPTION.sub(_span, match[1])}</code>"

    return CODE.sub(kept, content)


def _span(option: re.Match[str]) -> str:
    return f'<span class="unbroken">{option[0]}</span>'
