#!/usr/bin/env bash
# The same search for every way to keep the scale of 64 plain layers: 20 trials each, by validation accuracy, on a seed that no table uses.
# bash docs/results/evidence/thermostat_tune.sh
set -euo pipefail

common='"changes.learning_rate": {"low": 0.0002, "high": 0.002, "log": true},
  "options.output_gain": {"low": 1, "high": 100, "log": true}'
scale='"options.initial_gain": {"low": 1.3, "high": 1.8, "log": true},
  "options.input_gain": {"low": 1, "high": 1000, "log": true}'
step='"entropy.weight.of": {"low": 0.3, "high": 6, "log": true},
  "entropy.temperature": {"low": 0.01, "high": 1000, "log": true}'
pair='"options.scale": {"low": 1, "high": 30, "log": true},
  "options.scale_individually": [true, false]'
gains='{"output_gain": 1.0, "initial_gain": 1.0, "input_gain": 1.0}'

search() { # name, model, options, space, and further arguments
  eamp tune --study "$1" --model "$2" --options "$3" --search "{$4}" "${@:5}" \
    --data cora --depth 64 --width 64 --normalize_features --seed 100 --trials 20 --prune false \
    --changes '{"epochs": 200, "label_smoothing": 0.2, "learning_rate": 0.001, "weight_decay": 0.0,
      "schedule": "cosine", "reduction": "sum", "patience": null}' --output "out/tune_$1"
}

search none gcn "$gains" "$common, $scale"
search finite gcn "$gains" "$common, $scale, $step" \
  --entropy '{"weight": {"schedule": "gain", "of": 1.0}, "temperature": 1.0, "detach": false}'
search pairnorm pairnorm '{"scale": 3.0, "scale_individually": true, "output_gain": 1.0}' \
  "$common, $pair"
