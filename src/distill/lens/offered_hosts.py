"""The hosts that the server of distill.lens answers to.

A page of any name that is made to lead to this machine (DNS rebinding) could read the server, so it
refuses what it was never offered as.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from distill.config.settings.commands import Lens
from distill.lens import https

LOCAL = {"localhost", "127.0.0.1", "::1"}
_HEADER = re.compile(r"(?:\[([0-9a-f.:]+)\]|([^\s:@/?#\\\[\]]+))(?::\d*)?", re.IGNORECASE)


def of(settings: Lens, addresses: Iterable[str]) -> set[str]:
    """This machine's own names, the addresses that are printed, and those the user adds."""
    found = {*LOCAL, settings.host, *addresses, *added(settings)} - https.ANY
    return {plain(each) for each in found}


def added(settings: Lens) -> list[str]:
    """The user's own, say of a tunnel."""
    return [settings.names] if isinstance(settings.names, str) else settings.names


def of_header(text: str) -> str | None:
    """The host that a Host header names, without its port; None where it makes no sense."""
    found = _HEADER.fullmatch(text.strip())
    return plain(found[1] or found[2]) if found else None


def plain(host: str) -> str:
    """A name in small letters, an address in its shortest form: equal where they are the same."""
    try:
        address = ip_address(host.partition("%")[0])  # of a link-local one the interface
    except ValueError:
        return host.lower().removesuffix(".")
    return str(getattr(address, "ipv4_mapped", None) or address)
