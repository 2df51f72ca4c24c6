"""Parts for distill of a laboratory that does not exist."""
