"""Models timed in turn, as a plug-in."""
