"""Diagnosis: measure what every layer of a model does to the embedding, and say what to do."""

from eamp.diagnostics.diagnosis import Diagnosis, diagnose, report
from eamp.diagnostics.energies import (
    laplacian_energy,
    mean_energy,
    rayleigh_quotient,
    relative_energy,
    rusch_energy,
)
from eamp.diagnostics.influence import Influence, influence
from eamp.diagnostics.matrix_measures import dead_units, effective_rank, norm, numerical_rank
from eamp.diagnostics.monitor import Alarm, CollapseWarning, Monitor
from eamp.diagnostics.probing import Probe, probe
from eamp.diagnostics.resistance import Bottlenecks, bottlenecks
from eamp.diagnostics.similarity import group_distance_ratio, mad, mad_gap

__all__ = [
    "Alarm",
    "Bottlenecks",
    "CollapseWarning",
    "Diagnosis",
    "Influence",
    "Monitor",
    "Probe",
    "bottlenecks",
    "dead_units",
    "diagnose",
    "effective_rank",
    "group_distance_ratio",
    "influence",
    "laplacian_energy",
    "mad",
    "mad_gap",
    "mean_energy",
    "norm",
    "numerical_rank",
    "probe",
    "rayleigh_quotient",
    "relative_energy",
    "report",
    "rusch_energy",
]
