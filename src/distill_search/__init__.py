"""Searches with Optuna, and jobs of -m in processes: a plug-in that comes with distill."""
