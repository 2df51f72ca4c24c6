"""Distil heavy image-to-image networks into students for phones, lenses and the web."""

__version__ = "0.1.0"
