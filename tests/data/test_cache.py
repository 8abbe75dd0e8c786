import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import pytest

from eamp.data import cache, digests
from eamp.data.arrays import GraphArrays
from eamp.data.errors import DataWarning, RefusedError
from eamp.data.planetoid import assemble


@pytest.fixture
def arrays(tiny: dict[str, Any]) -> GraphArrays:
    return assemble("cora", tiny["cora"].files)


def test_arrays_and_source_survive_writing_and_reading(arrays: GraphArrays) -> None:
    assert cache.read("cora") is None
    cache.write("cora", arrays._asdict(), "folder")
    found = cache.read("cora")
    assert found is not None
    assert found[1] == "folder"
    assert digests.digest_of(found[0]) == digests.ARRAY_DIGESTS["cora"]


def test_file_holds_no_pickle_and_is_deterministic(arrays: GraphArrays) -> None:
    cache.write("cora", arrays._asdict(), "folder")
    first = cache.cache_path("cora").read_bytes()
    with np.load(cache.cache_path("cora"), allow_pickle=False) as stored:
        assert set(stored.files) == {*arrays._fields, "source"}
    cache.write("cora", arrays._asdict(), "folder")
    assert cache.cache_path("cora").read_bytes() == first


def test_objects_are_not_pickled(arrays: GraphArrays) -> None:
    with pytest.raises(ValueError, match="y would be pickled"):
        cache.write("cora", {**arrays._asdict(), "y": np.array([{}])}, "folder")
    assert cache.read("cora") is None


@pytest.mark.parametrize("keep", [0, 1, 10, 100, -1, -30])
def test_truncated_file_is_refused_by_name(arrays: GraphArrays, keep: int) -> None:
    cache.write("cora", arrays._asdict(), "folder")
    path = cache.cache_path("cora")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RefusedError, match=r"cora\.npz is refused"):
        cache.read("cora")


def test_flipped_byte_never_changes_the_arrays(arrays: GraphArrays) -> None:
    cache.write("cora", arrays._asdict(), "folder")
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
        else:  # the byte belongs to the zip format, for example to a date
            assert found is not None
            assert digests.digest_of(found[0]) == digests.ARRAY_DIGESTS["cora"]
    assert refused > len(content) // 7 // 2


def test_other_arrays_are_refused(arrays: GraphArrays) -> None:
    cache.write("cora", arrays._replace(y=1 - arrays.y)._asdict(), "folder")
    with pytest.raises(RefusedError, match="digest of its arrays"):
        cache.read("cora")


def test_pickled_objects_in_a_cache_file_are_refused(malicious_pickle: tuple[bytes, Path]) -> None:
    content, trace = malicious_pickle
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
    arrays: GraphArrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(file: Any, **_: object) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    cache.write("cora", arrays._asdict(), "folder")
    monkeypatch.setattr(np, "savez_compressed", killed)
    with pytest.raises(KeyboardInterrupt):
        cache.write("cora", arrays._asdict(), "folder")
    assert cache.read("cora") is not None
    assert [path.name for path in cache.cache_folder().iterdir()] == ["cora.npz"]


def test_temporary_file_of_a_killed_process_is_ignored(arrays: GraphArrays) -> None:
    cache.write("cora", arrays._asdict(), "folder")
    (cache.cache_folder() / ".cora-0123.part").write_bytes(b"half")
    assert cache.read("cora") is not None
    (cache.cache_folder() / "cora.npz").unlink()
    assert cache.read("cora") is None


def test_only_stale_temporary_files_are_removed(arrays: GraphArrays) -> None:
    cache.cache_folder().mkdir()
    old, young = cache.cache_folder() / ".cora-1.part", cache.cache_folder() / ".cora-2.part"
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    cache.write("cora", arrays._asdict(), "folder")
    assert (old.exists(), young.exists()) == (False, True)


def test_concurrent_readers_see_complete_files(arrays: GraphArrays) -> None:
    def write_and_read(_: int) -> bool:
        cache.write("cora", arrays._asdict(), "folder")
        return cache.read("cora") is not None

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(write_and_read, range(40)))
    assert [path.name for path in cache.cache_folder().iterdir()] == ["cora.npz"]


def test_unwritable_folder_is_a_warning(
    arrays: GraphArrays, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("EAMP_CACHE", str(tmp_path / "file"))
    with pytest.warns(DataWarning, match="could not be cached"):
        cache.write("cora", arrays._asdict(), "folder")


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
