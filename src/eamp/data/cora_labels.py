"""Labels of Planetoid's Cora taken from ``cora.content``, for sources without its label files.

``cora.content`` lists the same papers in another order, one per line: an id, the 1433 words as
0 or 1, and the class. The words are in Planetoid's order, and papers with the same words have the
same class, so a node's features determine its label.
"""

import numpy as np
import numpy.typing as npt

from eamp.data.errors import RefusedError

CLASSES = (  # in the order of Planetoid's label columns
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)


def cora_labels(x: npt.NDArray[np.float32], content: bytes) -> npt.NDArray[np.int64]:
    """Return the class of every row of the binary features ``x``, ``[n, 1433]``."""
    class_of_words: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        _, *words, last = line.split(b"\t")
        class_name = last.decode("latin1")
        if class_name not in CLASSES:
            raise RefusedError(
                f"cora.content is refused: line {number} has the unknown class {class_name!r}; "
                f"expected one of {', '.join(CLASSES)}."
            )
        label = CLASSES.index(class_name)
        if class_of_words.setdefault(b"".join(words), label) != label:
            raise RefusedError(
                f"cora.content is refused: the words of line {number} are listed with two classes."
            )
    if not np.isin(x, (0, 1)).all():
        raise RefusedError("cora.content has binary words, but the features are not all 0 or 1.")
    rows = np.where(x == 1, ord("1"), ord("0")).astype(np.uint8)
    labels = [class_of_words.get(row.tobytes(), -1) for row in rows]
    if -1 in labels:
        raise RefusedError(
            f"cora.content is refused: no line has the words of node {labels.index(-1)}."
        )
    return np.array(labels, dtype=np.int64)
