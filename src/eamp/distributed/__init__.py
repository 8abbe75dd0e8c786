"""One graph across machines: exact training of the whole graph, every process holding a part of it."""
