"""Sets for many machines: an engine that labels on a Ray cluster."""
