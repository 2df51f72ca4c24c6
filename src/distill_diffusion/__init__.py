"""Pipelines of the diffusers library as teachers: a plug-in that comes with distill."""
