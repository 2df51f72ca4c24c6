"""Distil heavy image-to-image networks into students for phones, lenses and the web."""

from distill.core.process import limit_spinning

__version__ = "0.1.0"

limit_spinning()  # before anything loads torch
