import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pytest

from eamp.data import cache, digests
from eamp.data.digests import DataWarning, RefusedError
from eamp.data.planetoid import assemble


@pytest.fixture
def cached(tiny: dict[str, Any]) -> cache.Cached:
    return cache.Cached(assemble("cora", tiny["cora"].files), "folder")


def test_what_is_written_is_read(cached: cache.Cached) -> None:
    assert cache.read("cora") is None
    cache.write("cora", cached)
    found = cache.read("cora")
    assert found is not None
    assert found.source == "folder"
    assert digests.digest_of(found.arrays._asdict()) == digests.ARRAYS["cora"]


def test_file_needs_no_pickle_and_is_the_same_every_time(cached: cache.Cached) -> None:
    cache.write("cora", cached)
    first = cache.cache_path("cora").read_bytes()
    with np.load(cache.cache_path("cora"), allow_pickle=False) as stored:
        assert set(stored.files) == {*cached.arrays._fields, "source"}
    cache.write("cora", cached)
    assert cache.cache_path("cora").read_bytes() == first


@pytest.mark.parametrize("keep", [0, 1, 10, 100, -1, -30])
def test_truncated_file_is_refused_by_name(cached: cache.Cached, keep: int) -> None:
    cache.write("cora", cached)
    path = cache.cache_path("cora")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RefusedError, match=r"cora\.npz is refused"):
        cache.read("cora")


def test_no_flipped_byte_changes_what_is_read(cached: cache.Cached) -> None:
    cache.write("cora", cached)
    path = cache.cache_path("cora")
    content = path.read_bytes()
    refused = 0
    for position in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            found = cache.read("cora")
        except RefusedError:
            refused += 1
        else:  # the byte was one of the zip's own, a date say
            assert found is not None
            assert digests.digest_of(found.arrays._asdict()) == digests.ARRAYS["cora"]
    assert refused > len(content) // 7 // 2


def test_other_arrays_are_refused(cached: cache.Cached) -> None:
    arrays = cached.arrays._replace(y=1 - cached.arrays.y)
    cache.write("cora", cache.Cached(arrays, "folder"))
    with pytest.raises(RefusedError, match="digest of its arrays"):
        cache.read("cora")


def test_pickled_objects_in_a_cache_file_are_refused(evil: tuple[bytes, Path]) -> None:
    content, trace = evil
    path = cache.cache_path("cora")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    with pytest.raises(RefusedError, match=r"cora\.npz is refused"):
        cache.read("cora")
    np.savez(path, y=np.array([{}], dtype=object))
    with pytest.raises(RefusedError, match=r"cora\.npz is refused"):
        cache.read("cora")
    assert not trace.exists()


def test_interrupted_writing_leaves_the_old_file(
    cached: cache.Cached, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(file: Any, **_: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    cache.write("cora", cached)
    monkeypatch.setattr(np, "savez_compressed", killed)
    with pytest.raises(KeyboardInterrupt):
        cache.write("cora", cached)
    assert cache.read("cora") is not None
    assert [path.name for path in cache.cache_folder().iterdir()] == ["cora.npz"]


def test_part_of_a_killed_process_is_ignored(cached: cache.Cached) -> None:
    cache.write("cora", cached)
    (cache.cache_folder() / ".cora-0123.part").write_bytes(b"half")
    assert cache.read("cora") is not None
    (cache.cache_folder() / "cora.npz").unlink()
    assert cache.read("cora") is None


def test_old_parts_are_swept_and_young_ones_left(cached: cache.Cached) -> None:
    cache.cache_folder().mkdir()
    old, young = cache.cache_folder() / ".cora-1.part", cache.cache_folder() / ".cora-2.part"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    cache.write("cora", cached)
    assert (old.exists(), young.exists()) == (False, True)


def test_many_at_once_never_see_a_part(cached: cache.Cached) -> None:
    def write_and_read(_: int) -> bool:
        cache.write("cora", cached)
        return cache.read("cora") is not None

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(40)))
    assert [path.name for path in cache.cache_folder().iterdir()] == ["cora.npz"]


def test_folder_that_cannot_be_written_is_told_and_no_error(
    cached: cache.Cached, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("EAMP_CACHE", str(tmp_path / "file"))
    with pytest.warns(DataWarning, match="could not be kept"):
        cache.write("cora", cached)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "home/.cache/eamp"),
        ("linux", {"XDG_CACHE_HOME": "{tmp}/xdg"}, "xdg/eamp"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "home/.cache/eamp"),
        ("darwin", {}, "home/Library/Caches/eamp"),
        ("win32", {"LOCALAPPDATA": "{tmp}/local"}, "local/eamp"),
        ("win32", {}, "home/AppData/Local/eamp"),
        ("linux", {"EAMP_CACHE": "{tmp}/mine"}, "mine"),
    ],
)
def test_folder_follows_the_platform(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variables: dict[str, str],
    expected: str,
) -> None:
    for name in ("EAMP_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.format(tmp=tmp_path))
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert PurePath(cache.cache_folder()) == tmp_path / expected
