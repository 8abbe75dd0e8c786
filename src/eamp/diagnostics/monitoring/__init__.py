"""Watch the layers of a model while it trains."""
