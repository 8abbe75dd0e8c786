#!/usr/bin/env bash
# The same search for our network, for its control without entropy and hidden propagation, and on CiteSeer for random propagation:
# 8 trials each, by validation accuracy, on a seed that no table uses.
# bash docs/results/points/tune.sh
set -euo pipefail

space='"changes.weight_decay": [0.00025, 0.0005, 0.001],
  "changes.consistency.weight": [1.0, 2.0, 3.0],
  "changes.consistency.temperature": [0.3, 0.5],
  "changes.consistency.warmup": [200, 400]'
hidden='"dropout": [0.5, 0.65]'
both="$hidden, \"options.input_dropout\": [0.0, 0.5]"
changes='{"epochs": 1000, "patience": 200, "weight_decay": 0.0005,
  "consistency": {"passes": 4, "weight": 2.0, "temperature": 0.5, "drop_rows": 0.5, "warmup": 200}}'

search() { # name, dataset, model, depth, width, options, further space
  eamp tune --study "$1_$2" --data "$2" --model "$3" --depth "$4" --width "$5" --options "$6" --search "{$7, $space}" \
    --normalize_features --seed 100 --trials 8 --baseline false --changes "$changes" --output "${OUTPUT:-out}/tune_$1_$2" --workers "${WORKERS:-2}"
}

for data in ${DATA:-citeseer cora}; do
  search ours "$data" entropic-deep-gcn 16 64 '{"input_dropout": 0.5, "layer_dropout": 0.0, "initial_residual": 0.1}' \
    "\"options.initial_residual\": [0.05, 0.1, 0.15, 0.2], $both"
  search appnp "$data" appnp 16 64 '{"input_dropout": 0.5, "alpha": 0.1}' "\"options.alpha\": [0.1, 0.15, 0.2, 0.3], $both"
done
search random citeseer random-propagation 2 32 '{"input_dropout": 0.0, "drop_rows": 0.0}' "$hidden"
