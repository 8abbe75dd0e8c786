import pytest
from numba.core.caching import CacheImpl

from eamp.graph.compiled_code import can_be_kept


def test_without_a_folder_to_write_to_code_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        pass

    assert can_be_kept(function)
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])  # Numba asks these for a folder
    assert not can_be_kept(function)
