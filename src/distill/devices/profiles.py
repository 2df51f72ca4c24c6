"""The devices a file can be checked for."""

from __future__ import annotations

from distill.devices import coreml, nnapi, snapml, web
from distill.devices.finding import Profile

PROFILES: dict[str, Profile] = {
    each.PROFILE.name: each.PROFILE for each in (snapml, coreml, nnapi, web)
}
