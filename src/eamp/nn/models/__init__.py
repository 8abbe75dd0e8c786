"""Networks, one method per file, and the one dictionary of them."""

from eamp.nn.models.registry import MODELS

__all__ = ["MODELS"]
