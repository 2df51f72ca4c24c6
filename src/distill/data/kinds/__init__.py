"""Where the pictures of a run come from: one class for each `data.kind`."""
