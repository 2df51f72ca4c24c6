"""Distil heavy image-to-image networks into students for phones, lenses and the web."""

from distill.core.process import spin_briefly

__version__ = "0.1.0"

spin_briefly()  # before anything loads torch
