"""What cards say of licences: in words, and in the front matter that the Hub reads."""

from dataclasses import replace
from typing import Any

import yaml

from distill.core.licence_terms import STRICT, Terms, known_licence
from distill.core.report import markdown_table, one_line

CARD = "README.md"
PERMITTED = "Its publisher says to have the permission of everybody named here for what it states"
HEAD = ("made from", "commercial use", "share alike", "attribution", "terms", "where")


def licence_entries(terms: Terms) -> dict[str, str]:
    """`license` as the Hub knows it, where one asks for all that the others do; else `other`, with
    a name and where to read on."""
    rows, all_in_one = [known_licence(each.text) for each in terms.counting], terms.strictest
    answers = tuple(getattr(all_in_one, question) for question in STRICT)
    if all(rows) and (fit := [row[0] for row in rows if row and row[1:] == answers]):
        return {"license": fit[-1]}
    link = all_in_one.source if all_in_one.source.startswith(("https://", "http://")) else CARD
    return {"license": "other", "license_name": "see-terms", "license_link": link}


def terms_section(terms: Terms, of: str) -> str:
    """All that `of` was made from as a table of Markdown, and what counts for it."""
    whole = replace(
        terms.strictest, of=f"**{of}**", text="the strictest", source="", stated=False, note=""
    )
    rows: list[tuple[str, ...]] = [HEAD]
    for each in (replace(whole, text="by permission") if terms.permission else whole, *terms.chain):
        text = each.text + " (says the publisher)" * each.stated
        text += f" ({each.note})" * bool(each.note)
        answers = each.commercial, each.share_alike, each.attribution
        rows.append((each.of, *answers, text, each.source))
    if not terms.permission:
        return markdown_table(rows)
    commands = ", ".join(f"distill.{one_line(each)}" for each in terms.permission)
    permitted = f"{PERMITTED} (licence.i_have_permission=true of {commands})."
    return f"{markdown_table(rows)}\n\n{permitted}"


def front_matter(entries: dict[str, Any]) -> str:
    """YAML between two lines of ---, at the top of a card."""
    return f"---\n{yaml.safe_dump(entries, sort_keys=False, allow_unicode=True)}---\n"
