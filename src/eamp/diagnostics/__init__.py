"""Diagnosis: measure what every layer of a model does to the embedding, and say what to do."""

from eamp.diagnostics.by_graph import measure_by_graph
from eamp.diagnostics.causes.jacobian import largest_singular_value
from eamp.diagnostics.causes.linear_probe import probe_accuracy
from eamp.diagnostics.diagnosis import diagnose, report
from eamp.diagnostics.hidden_states import token_measures
from eamp.diagnostics.measures.eigenspace import eigenspace_share
from eamp.diagnostics.measures.energies import (
    laplacian_energy,
    mean_energy,
    rayleigh_quotient,
    relative_energy,
    rusch_energy,
)
from eamp.diagnostics.measures.matrix_measures import (
    column_correlation,
    dead_units,
    effective_rank,
    matrix_rank,
    norm,
    numerical_rank,
    rank_one_distance,
)
from eamp.diagnostics.measures.similarity import group_distance_ratio, mad, mad_gap
from eamp.diagnostics.monitoring.monitor import Alarm, CollapseWarning, Monitor
from eamp.diagnostics.probing import Probe, probe
from eamp.diagnostics.reach.influence import Influence, influence
from eamp.diagnostics.reach.resistance import Bottlenecks, bottlenecks
from eamp.diagnostics.result import Diagnosis
from eamp.diagnostics.typed_diagnosis import TypedDiagnosis

__all__ = [
    "Alarm",
    "Bottlenecks",
    "CollapseWarning",
    "Diagnosis",
    "Influence",
    "Monitor",
    "Probe",
    "TypedDiagnosis",
    "bottlenecks",
    "column_correlation",
    "dead_units",
    "diagnose",
    "effective_rank",
    "eigenspace_share",
    "group_distance_ratio",
    "influence",
    "laplacian_energy",
    "largest_singular_value",
    "mad",
    "mad_gap",
    "matrix_rank",
    "mean_energy",
    "measure_by_graph",
    "norm",
    "numerical_rank",
    "probe",
    "probe_accuracy",
    "rank_one_distance",
    "rayleigh_quotient",
    "relative_energy",
    "report",
    "rusch_energy",
    "token_measures",
]
