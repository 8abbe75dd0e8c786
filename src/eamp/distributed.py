"""Deprecated names of :mod:`eamp.scale`."""

from eamp.moved import moved

__getattr__ = moved(
    __name__,
    {
        "GraphPart": "eamp.scale.partitioned_graph",
        "PeerError": "eamp.scale.halo_exchange",
        "Peers": "eamp.scale.process_group:ProcessGroup",
        "metis": "eamp.scale.partition",
        "take_part": "eamp.scale.partitioned_graph",
        "under_torchrun": "eamp.scale.process_group",
    },
)
