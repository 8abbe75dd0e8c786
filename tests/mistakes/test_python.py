"""A list of plausible mistakes in Python: each gets a sentence, not an accident further down."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv

import eamp
from eamp import nn
from eamp.data import load
from eamp.experiments.cell import Cell
from eamp.experiments.recipe import load_recipe
from eamp.experiments.search import Search
from eamp.experiments.several_seeds import train_seeds
from eamp.experiments.store import Store
from eamp.experiments.sweep import sweep
from eamp.nn.models import grand
from eamp.paper import Frames, from_folder, write_report
from eamp.report.citations import cite
from eamp.scale import ClusterLoader
from eamp.scale.sampling import sampled_graph
from eamp.training import PROTOCOLS, train

# What Python says when nobody has checked.
ACCIDENT = re.compile(
    r"^'\w+' object |^\S+\(\) (missing|got an)|not supported between|interpreted as"
)

# A mistake, and a regular expression for what its message must name.
MISTAKES = [
    # graphs
    ("Graph([[0, 1], [1, 0]])", "list"),
    ('Graph("cora")', "'cora'|str"),
    ("Graph(None)", "None"),
    ("Graph(edges.t()[:3])", "transposed"),
    ("Graph(edges.float())", "integers"),
    ("Graph(torch.eye(4))", "shape"),
    ("Graph(edges, 2)", "2"),
    ("Graph(edges, -1)", "num_nodes"),
    ("Graph(edges, 4.5)", "num_nodes"),
    ('Graph(edges, "4")', "num_nodes"),
    ("Graph(edges[:, :1])", "symmetrize|undirected"),
    ("Graph(edges, edge_weight=torch.ones(3))", "edge_weight"),
    ("Graph(edges, edge_weight=-torch.ones(6))", "weight"),
    ("Graph(edges, edge_weight=torch.full((6,), torch.nan))", "weight"),
    ("Graph(edges, edge_weight=[1.0] * 6)", "edge_weight"),
    ("Graph(edges, edge_weight=torch.ones(6, requires_grad=True))", "detach"),
    ("Graph(edges, batch=[0, 0, 0, 0])", "batch"),
    ("Graph(edges, batch=torch.zeros(3, dtype=torch.long))", "batch"),
    ("Graph(Data(x=x))", "edge_index"),
    ('setattr(Graph(edges), "num_nodes", 3)', "num_nodes"),
    # functions
    ("eamp.dirichlet_energy(x.numpy(), edges)", "x must"),
    ("eamp.dirichlet_energy(x.tolist(), edges)", "x must"),
    ("eamp.dirichlet_energy(x[:, 0], edges)", "unsqueeze"),
    ("eamp.dirichlet_energy(x.long(), edges)", "x must"),
    ("eamp.dirichlet_energy(x[:3], edges)", "3"),
    ("eamp.dirichlet_energy(edges, x)", "x must"),
    ("eamp.dirichlet_energy(x / 0, edges, check_finite=True)", "NaN"),
    ("eamp.boltzmann(x, None)", "None"),
    ("eamp.boltzmann(x, edges, 0)", "temperature"),
    ("eamp.entropy(x, edges, -1.0)", "temperature"),
    ('eamp.entropy(x, edges, "hot")', "temperature"),
    ("eamp.entropy(x, edges, None)", "temperature"),
    ("eamp.entropy(x, edges, torch.nan)", "temperature"),
    ("eamp.entropy(x, edges, torch.ones(2))", "temperature"),
    ('eamp.entropy_gradient(x, edges, variant="exat")', "variant"),
    ('eamp.backend("cuda").__enter__()', "backend"),
    # layers and wrapping
    ('EntropyAware("GCN")', "GCN"),
    ("EntropyAware(GCNConv)", "GCNConv"),
    ("EntropyAware(None)", "None"),
    ('EntropyAware(conv, "big")', "weight"),
    ("EntropyAware(conv, torch.nan)", "weight"),
    ("EntropyAware(conv, torch.tensor(1.0))", "weight"),
    ("EntropyAware(conv, None)", "weight"),
    ("EntropyAware(conv, True)", "weight"),
    ("EntropyAware(conv, temperature=0)", "temperature"),
    ('EntropyAware(conv, temperature="hot")', "temperature"),
    ("EntropyAware(conv, temperature=None)", "temperature"),
    ('EntropyAware(conv, detach="False")', "detach"),
    ('EntropyAware(conv, placement="middle")', "placement"),
    ('EntropyAware(conv, energy="foo")', "energy"),
    ('EntropyAware(conv, variant="exat")', "variant"),
    ("EntropyAware(conv, lamda=3)", "lamda"),
    ('EntropyAware(conv, {"schedule": "foo"})', "foo"),
    ('EntropyAware(conv, {"schedule": "gain"})', "of"),
    ('EntropyAware(conv, {"schedule": "gain", "of": "x"})', "number.* 'x'"),
    ('EntropyAware(conv, temperature="auto", learn_temperature=True)', "auto"),
    ("EntropyAware(conv)(x.tolist(), edges)", "list"),
    ("EntropyAware(conv)(x.numpy(), edges)", "ndarray"),
    ("EntropyAware(conv)(x)", "edge_index"),
    ("EntropyAware(conv)(x, edges.numpy())", "edge_index|ndarray"),
    ("EntropyAware(conv)(x, None)", "None|edge_index"),
    ('eamp.wrap("x")', "'x'|str"),
    ("eamp.wrap(GCN)", "GCN"),
    ("eamp.wrap(None)", "None"),
    ("eamp.wrap(torch.nn.Linear(3, 3))", "Linear"),
    ('eamp.wrap(gcn, only="nope")', "nope"),
    ("eamp.wrap(gcn, skip=3)", "skip|3"),
    ("eamp.wrap(gcn, EntropyStep(), weight=3)", "not both"),
    ("eamp.wrap(gcn, 3.0)", "3.0"),
    ('eamp.wrap(gcn, weight="big")', "weight"),
    ('eamp.unwrap("x")', "'x'|str"),
    # models
    ("nn.GCN(8, 16, 5, -3)", "num_layers"),
    ("nn.GCN(8, 16, 5, 2.5)", "num_layers"),
    ('nn.GCN(8, 16, 5, "2")', "num_layers"),
    ("nn.GCN(8, 0, 5, 2)", "hidden_channels|channels"),
    ("nn.GCN(8, 16, 0, 2)", "out_channels|channels"),
    ("nn.GCN(8, 16, 5, 2, dropout=2)", "dropout"),
    ('nn.GCN(8, 16, 5, 2, dropout="x")', "dropout"),
    ("nn.GCN(8, 16, 5, 2, entropy=True)", "entropy"),
    ("nn.GCN(8, 16, 5, 2, entropy=3.0)", "entropy"),
    ('nn.GCN(8, 16, 5, 2, entropy="paper")', "entropy"),
    ('nn.GCN(8, 16, 5, 2, entropy={"lambda": 3})', "lambda"),
    ('nn.GCN(8, 16, 5, 2, form="foo")', "form"),
    ("nn.G2(8, 16, 5, 2, p=0)", "p must"),
    ('nn.DeepGCN(8, 16, 5, 2, weights="foo")', "weights"),
    ('grand.GRAND(8, 16, 5, 2, attention="foo")', "attention"),
    ('grand.GRAND(8, 16, 5, 2, method="foo")', "method"),
    ("nn.GCN(3, 16, 5, 2)(x.numpy(), edges)", "x must|ndarray"),
    ("nn.GCN(3, 16, 5, 2)(x, edges.tolist())", "list"),
    ("nn.GCN(3, 16, 5, 2)(x, edges[:, :1])", "symmetrize|undirected"),
    # diagnostics
    ('eamp.diagnose("gcn", (x, edges))', "'gcn'|str"),
    ("eamp.diagnose(GCN, (x, edges))", "class|GCN"),
    ("eamp.diagnose(torch.nn.Linear(3, 3), (x,))", "Linear"),
    ('eamp.diagnose(small, "cora")', "but is a str"),
    ("eamp.diagnose(small, None)", "None"),
    ("eamp.diagnose(small, x)", "edge_index"),
    ("eamp.diagnose(small, (x,))", "edge_index"),
    ("eamp.diagnose(small, Data(x=x))", "edge_index"),
    ("eamp.diagnose(small, (x.numpy(), edges))", "ndarray"),
    ("eamp.diagnose(OtherNames(), Data(x=x, edge_index=edges))", "adjacency|run="),
    ("eamp.diagnose(small, (x, edges), temperature=0)", "temperature"),
    ("eamp.diagnose(small, (x, edges), labels=[0, 1])", "labels"),
    ('eamp.diagnose(small, (x, edges), run="x")', "run"),
    ('eamp.probe("gcn")', "'gcn'|str"),
    ('eamp.probe(small, measures=["foo"])', "foo"),
    ("eamp.probe(small, measures=3)", "measures"),
    ('eamp.probe(small, layers="foo")', "foo"),
    ("eamp.probe(small, layers=3)", "not by 3"),
    ("eamp.probe(small).table()", "inside the block"),
    ("eamp.probe(small).energy", "energy"),
    # data
    ('load("nowhere")', "nowhere"),
    ("load(3)", "3|int"),
    ("load(None)", "None"),
    ('load("csbm:seed=-1")', "seed"),
    ('load("csbm:nodes=-1")', "nodes"),
    ('load("csbm:nods=3")', "nods"),
    ('load("csbm:nodes=many")', "many"),
    ('load("csbm:homophily=3")', "homophily"),
    ('load("grid:0x3")', "grid"),
    ('load("grid:3x3", split="foo")', "foo"),
    ('load("grid:3x3", split=7)', "7"),
    ('load("grid:3x3", split="random:2/1/1")', "random"),
    ('load("grid:3x3", split=0.5)', "0.5"),
    ('load("grid:3x3", seed="x")', "seed"),
    ('load("grid:3x3", seed=-1)', "seed"),
    ('load("missing.npz")', "missing.npz"),
    ('load("pyg:Nope")', "Nope"),
    ('load("pyg:Planetoid/../x")', "\\.\\."),
    ('eamp.data.csbm(nodes="many")', "nodes|many"),
    ("eamp.data.grid(rows=2.5)", "rows|2.5"),
    ('eamp.data.get("nowhere")', "nowhere"),
    # training
    ('train("gcn", data, paper)', "gcn"),
    ("train(GCN, data, paper)", "GCN"),
    ('train(gcn, "cora", paper)', r"Data, .* but is str\. Load it: eamp.data.load"),
    ("train(gcn, (data.x, data.edge_index), paper)", "tuple"),
    ('train(gcn, data, "papr")', "papr"),
    ("train(gcn, data, None)", "None|protocol"),
    ('train(gcn, without("train_mask"), paper)', "train_mask"),
    ('train(gcn, without("val_mask"), paper)', "val_mask"),
    ('train(gcn, without("y"), paper)', "y"),
    ('train(gcn, without("x"), paper)', "x"),
    ('train(gcn, without("edge_index"), paper)', "edge_index"),
    ("train(nn.GCN(8, 16, 2, 2), data, paper)", "classes|out_channels"),
    ("train(nn.GCN(9, 16, 5, 2), data, paper)", "8|9|features"),
    ("train(gcn, data, paper, checkpoint=5)", "checkpoint"),
    ("train(gcn, data, paper, checkpoint=folder)", "checkpoint|folder"),
    ("train(gcn, data, paper, checkpoint=bare_tensors)", "checkpoint"),
    ('train(gcn, data, paper, checkpoint=folder / "file" / "run.safetensors")', "file"),
    (
        'train(gcn, data, paper, checkpoint=folder / "run.safetensors", checkpoint_every=0)',
        "checkpoint_every",
    ),
    ('train(gcn, data, paper, seed="x")', "seed"),
    ("train(gcn, data, paper, on_epoch=3)", "on_epoch"),
    ('paper.with_changes(epochs="many")', "epochs"),
    ("paper.with_changes(epochs=0)", "epochs"),
    ("paper.with_changes(epochz=3)", "epochz"),
    ('paper.with_changes(learning_rate="fast")', "learning_rate"),
    ("paper.with_changes(learning_rate=-1)", "learning_rate"),
    ("paper.with_changes(weight_decay=None)", "weight_decay"),
    ("paper.with_changes(patience=0.5)", "patience"),
    ("paper.with_changes(label_smoothing=3)", "label_smoothing"),
    ('paper.with_changes(select="best")', "select"),
    # experiments
    ('Cell("gpt", "csbm", 2)', "gpt"),
    ('Cell("gcn", "csbm", -3)', "depth"),
    ('Cell("gcn", "csbm", "4")', "depth"),
    ('Cell("gcn", "csbm", 2, width=0)', "width"),
    ('Cell("gcn", "csbm", 2, dropout=1.5)', "dropout"),
    ('Cell("gcn", "csbm", 2, entropy=True)', "entropy"),
    ('Cell("gcn", "csbm", 2, protocol="papr")', "papr"),
    ('Cell("gcn", "csbm", 2, changes={"epoch": 3})', "epoch"),
    ('Cell("gcn", "csbm", 2, changes={"learning_rate": "fast"})', "learning_rate"),
    ('Cell("gcn", "csbm", 2, changes=[3])', "changes"),
    ('Cell("gcn", "csbm", 2, seed=2**80)', "seed"),
    ('Cell("gcn", "grid:3x3", 2, options={"foo": 1}).build()', "foo"),
    ('Cell("gcn", "grid:3x3", 2, entropy={"weight": "big"}).build()', "weight"),
    ('load_recipe(folder / "nothing.yaml")', "nothing.yaml"),
    ("load_recipe(None)", "None"),
    ('train_seeds(Cell("gcn", "grid:3x3", 2), 0)', "seeds"),
    ('Search(Cell("gcn", "csbm", 2), {"colour": [1]})', "colour"),
    ('Search(Cell("gcn", "csbm", 2), {"dropout": 3})', "dropout"),
    ('Search(Cell("gcn", "csbm", 2), {"dropout": []})', "dropout"),
    ('Search(Cell("gcn", "csbm", 2), ["dropout"])', "space|mapping"),
    ('Search(Cell("gcn", "csbm", 2), {}, seeds=0)', "seeds"),
    ('sweep([Cell("gcn", "grid:3x3", 2)], Store(folder, "a"), workers=0)', "workers"),
    ('sweep([Cell("gcn", "grid:3x3", 2)], Store(folder, "a"), workers=-2)', "workers"),
    ('Store(folder / "file", "a")', "file"),
    ('Store(folder, "a", "mysql://nowhere")', "mysql"),
    # large graphs
    ("ClusterLoader(data, clusters=0)", "1 part or more"),
    ('ClusterLoader(data, clusters="many")', "clusters"),
    ("ClusterLoader(data, clusters=5, hops=0)", "hops"),
    ("ClusterLoader(data, clusters=5, batch_size=0)", "batch_size"),
    ('ClusterLoader("cora", clusters=5)', "str"),
    ('eamp.inference("gcn", x, edges)', "gcn"),
    ("eamp.inference(small, x, edges, edges_per_block=0)", "edges_per_block"),
    ("sampled_graph(data, Graph(data))", "n_id"),
    # reports
    ('cite("foo")', "foo"),
    ("from_folder(folder)", "run.json"),
    ('write_report(folder, Frames(cells=pd.DataFrame({"a": [1]})))', "column"),
    ("write_report(folder, Frames(cells=[1]))", "cells"),
    ("write_report(folder, {})", "Frames"),
]


class OtherNames(torch.nn.Module):
    """A model whose arguments have other names, and are more, than those of PyG."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(3, 3)

    def forward(self, h: Tensor, scale: Tensor, adjacency: Tensor) -> Tensor:
        out: Tensor = self.conv(h * scale, adjacency)
        return out


CLASSES = (Cell, ClusterLoader, Data, Frames, GCN, GCNConv, OtherNames, Search, Store)
OF_EAMP = (eamp.EntropyAware, eamp.Graph, nn.EntropyStep, cite, from_folder, load, load_recipe)
OTHERS = (sampled_graph, sweep, train, train_seeds, write_report)
USED: dict[str, Any] = {each.__name__: each for each in (*CLASSES, *OF_EAMP, *OTHERS)}


@pytest.fixture
def names(tmp_path: Path) -> dict[str, Any]:
    """The names that the mistakes use."""
    (tmp_path / "file").write_text("in the way")
    save_file({"weight": torch.ones(1)}, bare_tensors := tmp_path / "bare.safetensors")
    data = eamp.data.load("csbm:nodes=60,features=8")

    def without(name: str) -> Data:
        fewer = data.clone()
        delattr(fewer, name)
        return fewer

    return {
        **USED,
        "eamp": eamp,
        "nn": nn,
        "grand": grand,
        "torch": torch,
        "pd": pd,
        "x": torch.randn(4, 3),
        "edges": torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]),
        "data": data,
        "without": without,
        "conv": GCNConv(3, 3),
        "gcn": nn.GCN(8, 16, 5, num_layers=2),
        "small": nn.GCN(3, 16, 5, num_layers=2),
        "paper": PROTOCOLS["paper"].with_changes(epochs=1),
        "folder": tmp_path,
        "bare_tensors": bare_tensors,
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("mistake", "named"), MISTAKES, ids=[code for code, _ in MISTAKES])
def test_a_mistake_gets_a_sentence(mistake: str, named: str, names: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError, AttributeError, OSError, RuntimeError)) as caught:
        eval(mistake, names)
    said = str(caught.value)
    assert re.search(named, said)
    assert not ACCIDENT.search(said)
