"""Draw the rooms of eamp and their imports, as docs/architecture.md shows them.

``python docs/rooms.py`` prints the picture; with ``--write`` it goes into docs/architecture.md.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

# A room imports only from rooms before it.
ROOMS = (
    "optional",
    "files",
    "spelling",
    "graph",
    "ops",
    "functional",
    "nn",
    "diagnostics",
    "data",
    "training",
    "scale",
    "experiments",
    "report",
    "paper",
    "cli",
)
PAGE = Path(__file__).resolve().parent / "architecture.md"
SOURCE = PAGE.parent.parent / "src" / "eamp"
BLOCK = re.compile(r"(?<=```text\n).*?(?=```\n)", re.DOTALL)  # the only block of text on the page


def imported_rooms(room: str) -> set[str]:
    """Return the other rooms from which the files of ``room`` import, at any level."""
    folder = SOURCE / room
    names: set[str] = set()
    for file in folder.rglob("*.py") if folder.is_dir() else [SOURCE / f"{room}.py"]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
    found = {name.split(".")[1] for name in names if name.startswith("eamp.")}
    return found & set(ROOMS) - {room}


def picture() -> str:
    """Return a row per room, with a mark in the column of every room that it imports from."""
    lines = [" " * 15 + "".join(f"{number:>3}" for number in range(1, len(ROOMS) + 1))]
    for number, room in enumerate(ROOMS, start=1):
        found = imported_rooms(room)
        marks = ["■" if other == room else "●" if other in found else "·" for other in ROOMS]
        lines.append(f"{number:>2} {room:12}" + "".join(f"{mark:>3}" for mark in marks))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Print the picture, or put it into the page."""
    if "--write" not in sys.argv:
        sys.stdout.write(picture())
        return
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda _: picture(), page, count=1), encoding="utf-8")


if __name__ == "__main__":
    main()
