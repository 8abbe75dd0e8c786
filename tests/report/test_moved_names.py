import subprocess
import sys

import pytest

import eamp.paper
import eamp.report


@pytest.mark.parametrize("name", ["PROTOCOL_NOTES", "from_folder", "write_report"])
def test_names_that_moved_to_the_paper_still_work(name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"from eamp.paper import {name}"):
        moved = getattr(eamp.report, name)
    assert moved is getattr(eamp.paper, name)


def test_other_names_are_missing() -> None:
    with pytest.raises(AttributeError, match="no attribute 'write'"):
        _ = eamp.report.write


def test_the_room_of_reports_does_not_load_the_paper() -> None:
    program = "import sys, eamp.report.page; sys.exit('eamp.paper' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
