"""Sets that no teacher labels, of distill.prepare: a plug-in that comes with distill.

Sketches of photos, drawings of Quick, Draw!, and two domains by an attribute.
"""
