"""The labels of Planetoid's Cora out of ``cora.content``, for sources that lack the three label files.

``cora.content`` lists the same papers in another order, one per line: an id, the 1433 words as 0 or 1, the class. The
words stand in Planetoid's order, and papers with the same words have the same class, so the features alone decide.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eamp.data.digests import RefusedError

CLASSES = (  # in the order of Planetoid's label columns
    "Theory",
    "Reinforcement_Learning",
    "Genetic_Algorithms",
    "Neural_Networks",
    "Probabilistic_Methods",
    "Case_Based",
    "Rule_Learning",
)


def cora_labels(x: npt.NDArray[np.float32], content: bytes) -> npt.NDArray[Any]:
    """The class of every row of ``x``.

    Args:
        x: ``[n, 1433]``, zeros and ones.
        content: the bytes of ``cora.content``.

    Raises:
        RefusedError: if a row is not in the file, or stands there with two classes.
    """
    class_of_words: dict[bytes, int] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        _, *words, class_name = line.split(b"\t")
        if class_name.decode("latin1") not in CLASSES:
            raise RefusedError(
                f"cora.content is refused: line {number} names the unknown class {class_name.decode('latin1')!r}."
            )
        label = CLASSES.index(class_name.decode("latin1"))
        if class_of_words.setdefault(b"".join(words), label) != label:
            raise RefusedError(
                f"cora.content is refused: the words of line {number} stand there with two classes."
            )

    if not np.isin(x, (0, 1)).all():
        raise RefusedError(
            "cora.content gives labels by binary words only, but the features are not all 0 or 1."
        )
    rows = np.where(x == 1, ord("1"), ord("0")).astype(np.uint8)
    labels = [class_of_words.get(row.tobytes(), -1) for row in rows]
    if -1 in labels:
        raise RefusedError(
            f"cora.content is refused: no line has the words of node {labels.index(-1)}."
        )
    return np.array(labels, dtype=np.int64)
