"""How far a node sees, and where a graph is narrow."""
