from support.export_sources import photo, shipped, source, told

__all__ = ["photo", "shipped", "source", "told"]
