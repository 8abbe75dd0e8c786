"""Message-passing layers and norms, one per file."""
