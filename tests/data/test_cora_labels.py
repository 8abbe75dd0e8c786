import numpy as np
import pytest

from eamp.data.cora_labels import CLASSES, cora_labels
from eamp.data.errors import RefusedError

CONTENT = b"7\t1\t0\tTheory\r\n9\t0\t1\tRule_Learning\r\n8\t1\t0\tTheory\r\n"


def rows(*values: list[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array(values, dtype=np.float32)


def test_labels_follow_the_words() -> None:
    assert cora_labels(rows([0, 1], [1, 0], [0, 1]), CONTENT).tolist() == [6, 0, 6]
    assert len(CLASSES) == 7


def test_row_without_a_line_is_refused() -> None:
    with pytest.raises(RefusedError, match=r"cora\.content.*node 1"):
        cora_labels(rows([0, 1], [1, 1]), CONTENT)


def test_same_words_with_two_classes_are_refused() -> None:
    with pytest.raises(RefusedError, match="line 4 are listed with two classes"):
        cora_labels(rows([0, 1]), CONTENT + b"5\t1\t0\tCase_Based\n")


def test_unknown_class_is_refused() -> None:
    with pytest.raises(RefusedError, match="line 4 has the unknown class 'Poetry'"):
        cora_labels(rows([0, 1]), CONTENT + b"5\t1\t1\tPoetry\n")


def test_features_must_match_exactly() -> None:
    with pytest.raises(RefusedError, match="not all 0 or 1"):
        cora_labels(rows([0, 0.999]), CONTENT)
