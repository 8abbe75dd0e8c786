"""The one door: any adjacency becomes a validated, frozen graph, or raises a clear error."""

from eamp.graph.csr import CSR
from eamp.graph.edge_index_cache import as_graph, check_features, graph_for
from eamp.graph.errors import GraphError
from eamp.graph.graph import Adjacency, Graph, Rows
from eamp.graph.typed_graph import TypedGraph

__all__ = [
    "CSR",
    "Adjacency",
    "Graph",
    "GraphError",
    "Rows",
    "TypedGraph",
    "as_graph",
    "check_features",
    "graph_for",
]
