#!/usr/bin/env bash
# The same search for our network and for its control without entropy and hidden propagation: 12 trials each, by validation accuracy,
# on a seed that no table uses.
# bash docs/results/points/tune.sh
set -euo pipefail

space='"dropout": [0.35, 0.5, 0.65],
  "options.input_dropout": [0.0, 0.3, 0.5],
  "changes.weight_decay": [0.00025, 0.0005, 0.001],
  "changes.consistency.weight": [1.0, 2.0, 3.0],
  "changes.consistency.temperature": [0.3, 0.5],
  "changes.consistency.warmup": [100, 200, 400]'
changes='{"epochs": 1000, "patience": 100, "weight_decay": 0.0005,
  "consistency": {"passes": 4, "weight": 2.0, "temperature": 0.5, "drop_rows": 0.5, "warmup": 200}}'

search() { # name, dataset, model, options, space of its restart
  eamp tune --study "$1_$2" --data "$2" --model "$3" --options "$4" --search "{$5, $space}" --depth 16 --width 64 \
    --normalize_features --seed 100 --trials 12 --baseline false --changes "$changes" --output "${OUTPUT:-out}/tune_$1_$2" --workers "${WORKERS:-2}"
}

for data in ${DATA:-citeseer cora}; do
  search ours "$data" entropic-deep-gcn '{"input_dropout": 0.5, "layer_dropout": 0.0, "initial_residual": 0.1}' '"options.initial_residual": [0.05, 0.1, 0.15, 0.2]'
  search appnp "$data" appnp '{"input_dropout": 0.5, "alpha": 0.1}' '"options.alpha": [0.1, 0.15, 0.2, 0.3]'
done
