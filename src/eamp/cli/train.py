"""Train a model on a dataset with several seeds, and print its accuracy or another metric."""

from pathlib import Path
from typing import Literal

from jsonargparse import ArgumentParser, Namespace
from jsonargparse.typing import PositiveFloat, PositiveInt

from eamp.cli import options as shared
from eamp.cli.exit_status import INTERRUPTED, fail

EXAMPLE = "eamp train --model gcnii --data cora --depth 16 --seeds 3 --output out/gcnii"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    shared.add_cell(parser, depth=4)
    parser.add_argument(
        "--seeds", type=PositiveInt, default=1, help="train with seeds seed, seed + 1, ..."
    )
    folder = "folder for results, predictions, and checkpoints to continue from"
    parser.add_argument("--output", type=Path | None, help=folder)
    parser.add_argument(
        "--partition",
        type=Literal["metis"] | None,
        help="how to spread the graph over the processes of torchrun, "
        "as in `torchrun --nproc-per-node 4 -m eamp train --partition metis`",
    )
    parser.add_argument(
        "--timeout",
        type=PositiveFloat,
        default=600.0,
        help="seconds that a process waits for the others",
    )


def run(options: Namespace) -> int:
    """Train, and print the plan and the summary from the leading process."""
    shared.check_model(options)
    # heavy: imported when the command runs
    from eamp.experiments.several_seeds import plan, summary, train_seeds
    from eamp.scale.halo_exchange import PeerError
    from eamp.scale.process_group import under_torchrun

    leads, results = True, None
    try:
        with under_torchrun(options.partition, options.timeout) as process:
            cell, leads = shared.cell_from(options), process.leads
            _ = cell.problem  # data that cannot be had are told before anything else
            if leads:
                print(plan(cell, options.seeds), flush=True)
            given = (cell, options.seeds, options.output)
            results = train_seeds(*given, progress=True, process=process)
    except PeerError as error:  # another process has ended
        return fail(error)
    except KeyboardInterrupt:
        pass  # told below, when the progress bar has gone with the traceback
    if results is None:
        return interrupted(options.output) if leads else INTERRUPTED
    if leads:
        print(summary(results, cell))
    return 0


def interrupted(output: Path | None) -> int:
    """Say what is left of a training that was interrupted, and return the exit status."""
    if output is None:
        fail(
            "interrupted; nothing is kept. With --output FOLDER the same command would continue "
            "from its last checkpoint."
        )
    else:
        fail(
            f"interrupted; {output} keeps the seeds that have finished and the last checkpoint, "
            "from which the same command continues."
        )
    return INTERRUPTED
