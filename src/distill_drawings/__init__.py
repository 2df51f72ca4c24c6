"""Teachers that are computed, without weights, as a plug-in: toon, ink, oil, pencil …"""
