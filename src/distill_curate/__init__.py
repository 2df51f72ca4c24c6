"""Scores of pairs, and a page to look through them, as a plug-in."""
