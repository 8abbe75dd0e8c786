"""Files are written in one piece, and reach the disk before they take their name."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from eamp.files import remove_leftovers, write_atomically


@pytest.mark.parametrize("kind", [str, Path])
def test_a_file_holds_the_content_as_it_is(kind: type, tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "page.html"
    write_atomically(kind(file), "λ\r\n")
    assert file.read_bytes() == "λ\r\n".encode()
    write_atomically(kind(file), b"\0")
    assert file.read_bytes() == b"\0"
    assert [*file.parent.iterdir()] == [file]


def test_a_link_is_replaced_and_not_the_file_that_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("of somebody else")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", "text")
    assert (tmp_path / "link").read_text() == "text"
    assert (tmp_path / "file").read_text() == "of somebody else"


def test_the_file_and_its_new_name_reach_the_disk_in_this_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seen, fsync = tmp_path / "file", [], os.fsync

    def recorded(handle: int) -> None:
        fsync(handle)
        seen.append((stat.S_ISDIR(os.fstat(handle).st_mode), file.exists()))

    monkeypatch.setattr(os, "fsync", recorded)
    write_atomically(file, "text")
    assert seen == [(False, False), (True, True)]  # the content, then the folder with the name


def test_a_full_disk_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "file"
    write_atomically(file, "old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert [*tmp_path.iterdir()] == [file]


def test_leftovers_of_one_file_are_removed(tmp_path: Path) -> None:
    names = [".a[1].x.part", ".a1.x.part", "a[1]", ".a[1].x.txt"]
    for name in names:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path / "a[1]")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
