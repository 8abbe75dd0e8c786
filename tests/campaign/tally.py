"""What a part of the campaign counted and what it found wrong."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Options:
    """What every part of the campaign is told.

    Attributes:
        seed: the seed of all random choices.
        folder: an empty folder for the files of this part.
        graphs: how many random graphs to compare with the oracle.
        kills: how many processes of sweeps, searches and trainings to kill.
        ranks: how many processes of ``torchrun`` to kill.
        hostile: how many hostile inputs to try; all of them if ``None``.
        cores: how many processes of the campaign may run at the same time.
    """

    seed: int
    folder: Path
    graphs: int = 10_000
    kills: int = 100
    ranks: int = 10
    hostile: int | None = None
    cores: int = 2


@dataclass
class Tally:
    """Figures for the summary, and a line for everything that went wrong."""

    kind: str
    counts: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def count(self, name: str, more: int = 1) -> None:
        """Add to a figure."""
        self.counts[name] = self.counts.get(name, 0) + more

    def fault(self, words: str) -> None:
        """Note something that was lost, executed or silently wrong."""
        self.faults.append(words)
        print(f"  {self.kind}: FAULT {words}", flush=True)

    def say(self, words: str) -> None:
        """Show the progress."""
        print(f"  {self.kind}: {words}", flush=True)
