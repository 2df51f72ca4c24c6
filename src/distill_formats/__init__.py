"""Export formats for phones and apps, and their devices: a plug-in that comes with distill."""
