"""Search for good settings of a model by a validation metric; run it again to continue."""

import sys
from typing import Any

from jsonargparse import ArgumentParser, Namespace
from jsonargparse.typing import PositiveInt

from eamp.cli import options as shared
from eamp.cli.exit_status import resumable

EXAMPLE = "eamp tune --model entropic-gcn --data cora --depth 16 --trials 50 --output out/tune"


def add(parser: ArgumentParser) -> None:
    """Add the options of the command."""
    shared.add_cell(parser, depth=4)
    parser.add_argument(
        "--search",
        type=dict[str, Any] | None,
        help="what to search, as in "
        '{"entropy.weight": {"low": 0.1, "high": 30, "log": true}, "dropout": [0, 0.5]}; '
        "by default weight and temperature of the entropy step, and the learning rate",
    )
    parser.add_argument(
        "--trials", type=PositiveInt, default=50, help="including those of earlier calls"
    )
    parser.add_argument("--seeds", type=PositiveInt, default=1, help="seeds whose mean a trial is")
    parser.add_argument("--prune", type=bool, default=True, help="stop trials below the median")
    parser.add_argument(
        "--baseline", type=bool, default=True, help="train the best also without the entropy step"
    )
    parser.add_argument("--study", type=str, help="by default model, dataset and depth")
    shared.add_store(parser, "out/tune")
    shared.add_workers(parser)


@resumable
def run(options: Namespace) -> int:
    """Search, write the trials and a recipe of the best, print the best and its baseline."""
    shared.check_model(options)
    # heavy: imported when the command runs
    from eamp.cli.tables import show
    from eamp.experiments import baseline, tune
    from eamp.experiments.search import DEFAULT_SPACE, Search
    from eamp.experiments.store import Store
    from eamp.training import METRICS

    space = options.search or DEFAULT_SPACE
    search = Search(shared.cell_from(options), space, options.seeds, options.prune)
    name = options.study or f"{options.model} on {options.data}, depth {options.depth}"
    store = Store(options.output, name, shared.shared_storage(options))
    trials = tune.tune(search, store, options.trials, options.workers)
    for reason in tune.failures(store):
        print(f"failed: {reason}", file=sys.stderr)
    for line in tune.diverged_tries(store):
        print(f"warning: {line}", file=sys.stderr)
    if not trials:
        raise ValueError("no trial has finished.")
    best, recipe = tune.best_cell(trials), options.output / "best.yaml"
    metric = best.metric
    tune.save_recipe(best, options.seeds, recipe)
    tune.save_trials(store, table := options.output / "trials.csv", metric)
    show(tune.best_table(trials, tune.importances(store), metric))
    print(f"{tune.trial_counts(store, metric)} All of them: {table}")
    print(f"The best again: {tune.train_command(best, options.seeds)}")
    print(f"As a recipe for `eamp sweep`: {recipe}", flush=True)
    bare = baseline.without_step(best)
    if bare is not None and options.baseline:
        place = (options.output / "baseline", f"{name}, without the entropy step")
        beside = Store(*place, shared.shared_storage(options))
        value = baseline.validation_metric(bare, options.seeds, beside, options.workers)
        reached = METRICS[metric].merit(trials[0].values[0])
        print(baseline.in_words(value, reached, options.seeds, metric))
    elif bare is not None:
        print("Baseline, the best trial without the entropy step: not trained (--baseline false).")
    return 0
