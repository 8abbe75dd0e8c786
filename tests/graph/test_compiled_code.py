import importlib
from pathlib import Path

import numba
import pytest
from numba.core.caching import CacheImpl

from eamp.graph.compiled_code import can_be_kept


def test_without_a_folder_to_write_to_code_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def function() -> None:
        pass

    assert can_be_kept(function)
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])  # Numba asks these for a folder
    assert not can_be_kept(function)


def test_code_of_a_read_only_package_is_kept_in_the_users_cache_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "read_only_package.py").write_text("def successor(n):\n    return n + 1\n")
    (tmp_path / "__pycache__").touch()  # a file in the way of the cache stops even root
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    successor = importlib.import_module("read_only_package").successor
    assert can_be_kept(successor)
    assert numba.njit(cache=True)(successor)(1) == 2
    assert len([*(tmp_path / "cache" / "numba").rglob("read_only_package.successor*.nbc")]) == 1
