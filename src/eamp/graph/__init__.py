"""The one door: any adjacency becomes a validated, frozen CSR graph, and every graph error is raised here."""

from eamp.graph.graph import CSR, INT32_MAX, Adjacency, Graph, GraphError, build_csr

__all__ = ["CSR", "INT32_MAX", "Adjacency", "Graph", "GraphError", "build_csr"]
