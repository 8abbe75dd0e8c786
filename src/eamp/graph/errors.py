"""The error that every problem with a graph is reported as."""


class GraphError(ValueError):
    """Raised for an adjacency, or features beside one, that cannot be used.

    The message says what came, what was expected and how to mend it.
    """
