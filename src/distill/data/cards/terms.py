"""What cards say of licences: in words, and in the front matter that the Hub reads."""

from __future__ import annotations

from typing import Any

import yaml

INHERITED = (
    "A student learnt from a teacher's pictures inherits the terms of the teacher's weights: {}. "
    "The photos it learnt from are not in it and not shipped."
)
KNOWN = {  # how a licence's text begins, and what the Hub calls it
    "MIT": "mit",
    "Apache-2.0": "apache-2.0",
    "CC0": "cc0-1.0",
    "CC BY 4.0": "cc-by-4.0",
    "CC BY-SA 4.0": "cc-by-sa-4.0",
    "CC BY-NC 4.0": "cc-by-nc-4.0",
    "CC BY-NC-SA 4.0": "cc-by-nc-sa-4.0",
}


def licence_entries(licence: str, source: str) -> dict[str, str]:
    """`license` as the Hub knows it, or `other` with a name and where to read on."""
    for start, name in KNOWN.items():
        if licence == start or licence.startswith((f"{start},", f"{start} (", f"{start};")):
            return {"license": name}
    link = source if source.startswith(("https://", "http://")) else "README.md"
    return {"license": "other", "license_name": "see-terms", "license_link": link}


def front_matter(entries: dict[str, Any]) -> str:
    """YAML between two lines of ---, at the top of a card."""
    return f"---\n{yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)}---\n"


def one_line(text: object) -> str:
    """Text that came in a file, as it may stand in a list or a table of Markdown."""
    return " ".join(str(text).split()).replace("|", "\\|")
