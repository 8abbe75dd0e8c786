"""Graphs by name: Cora and other datasets, generated graphs, your own, and PyG's datasets."""

from eamp.data.cache import cache_folder
from eamp.data.catalogue import CheckResult, Entry, Summary, available, check, get, summarize
from eamp.data.digests import graph_digest
from eamp.data.distant import chains, distance
from eamp.data.errors import DataError, DataWarning, RefusedError
from eamp.data.graph_sets import GraphSet, SetSummary
from eamp.data.loading import load
from eamp.data.molecule_like import wiener
from eamp.data.parts import k_fold, link_split
from eamp.data.splits import Fractions, PerClass
from eamp.data.synthetic import csbm, grid

__all__ = [
    "CheckResult",
    "DataError",
    "DataWarning",
    "Entry",
    "Fractions",
    "GraphSet",
    "PerClass",
    "RefusedError",
    "SetSummary",
    "Summary",
    "available",
    "cache_folder",
    "chains",
    "check",
    "csbm",
    "distance",
    "get",
    "graph_digest",
    "grid",
    "k_fold",
    "link_split",
    "load",
    "summarize",
    "wiener",
]
