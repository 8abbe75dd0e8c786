"""Which part of a layer changes the embedding, and whether the change costs anything."""
