"""Layers and models."""

from eamp.nn.entropy_aware import EntropyAware
from eamp.nn.wrapping import unwrap, wrap

__all__ = ["EntropyAware", "unwrap", "wrap"]
