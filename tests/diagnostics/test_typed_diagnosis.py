"""Probe and diagnosis of models on typed graphs: one row and one verdict per relation."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Module, ModuleList
from torch_geometric.data import HeteroData
from torch_geometric.nn import GCNConv, HeteroConv, SAGEConv, to_hetero
from torch_geometric.transforms import ToUndirected

import eamp
from eamp.diagnostics import Diagnosis, TypedDiagnosis, effective_rank, mean_energy

WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")
NAMES = ["author writes paper", "paper cites paper"]


def graph(seed: int = 0) -> HeteroData:
    generator = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["author"].x = torch.randn(30, 4, generator=generator)
    data["paper"].x = torch.randn(40, 6, generator=generator)
    authors = torch.randint(30, (90,), generator=generator)
    data[WRITES].edge_index = torch.stack([authors, torch.randint(40, (90,), generator=generator)])
    data[CITES].edge_index = torch.randint(40, (2, 80), generator=generator)
    return ToUndirected()(data)


class Network(Module):
    def __init__(self, data: HeteroData, layers: int, width: int = 16) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.convs = ModuleList(
            HeteroConv({e: SAGEConv((-1, -1), width) for e in data.edge_types}, aggr="mean")
            for _ in range(layers)
        )
        with torch.no_grad():
            self(data.x_dict, data.edge_index_dict)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> dict[str, Tensor]:
        for conv in self.convs:
            x_dict = {k: each.relu() for k, each in conv(x_dict, edge_index_dict).items()}
        return x_dict


def test_a_row_per_layer_and_relation_has_the_measures_of_the_relations_graph() -> None:
    data = graph()
    model = Network(data, 3)
    with eamp.probe(model) as p:
        model(data.x_dict, data.edge_index_dict)
    table = p.table()
    assert list(table["relation"]) == NAMES * 3
    assert list(table["layer"]) == [1, 1, 2, 2, 3, 3]
    assert list(table["nodes"]) == [70, 40] * 3
    typed = eamp.TypedGraph(data)
    with torch.no_grad():
        out = model.convs[0](data.x_dict, data.edge_index_dict)
    for row, relation in enumerate((WRITES, CITES)):
        x = typed.rows(out, relation)
        assert table["energy"][row] == pytest.approx(float(mean_energy(x, typed[relation])))
        assert table["effective_rank"][row] == pytest.approx(float(effective_rank(x)))
    assert p.energy.shape == (6,)
    assert "author writes paper: 3 layers" in repr(p)
    assert "paper cites paper: 3 layers" in p._repr_html_()


def test_a_wrapped_layer_is_measured_with_its_step() -> None:
    data = graph()
    bare, wrapped = Network(data, 2), eamp.wrap(Network(data, 2), weight=0.3, temperature=100.0)
    found = []
    for model in (bare, wrapped):
        with eamp.probe(model) as p:
            model(data.x_dict, data.edge_index_dict)
        found.append(p.table())
    assert set(found[1]["type"]) == {"EntropyAware(HeteroConv)"}
    assert (found[1]["energy"] > found[0]["energy"]).all()


def test_every_relation_has_its_own_verdict() -> None:
    data = graph()
    diagnosis = eamp.diagnose(Network(data, 24), data)
    assert isinstance(diagnosis, TypedDiagnosis)
    assert isinstance(diagnosis, Diagnosis)
    assert list(diagnosis.relations) == NAMES
    assert {each.kind for each in diagnosis.relations.values()} == {"smoothing"}
    assert diagnosis.kind == "smoothing"
    assert diagnosis.layer == min(each.layer or 99 for each in diagnosis.relations.values())
    assert all(name in str(diagnosis) for name in NAMES)
    assert len(diagnosis.table) == 48
    healthy = eamp.diagnose(Network(data, 2), (data.x_dict, data.edge_index_dict))
    assert healthy.kind == "healthy"
    assert repr(healthy) == (
        "TypedDiagnosis({'author writes paper': 'healthy', 'paper cites paper': 'healthy'})"
    )


def test_types_that_lie_apart_do_not_hide_that_their_nodes_are_alike() -> None:
    """Authors at one point and papers at another have no energy, however far apart."""
    data = graph()
    typed = eamp.TypedGraph(data)
    x = {"author": torch.ones(30, 3), "paper": 5 * torch.ones(40, 3)}
    assert torch.equal(eamp.dirichlet_energy(typed.stack(x), typed.graph), torch.zeros(110))


def test_the_chart_has_a_line_per_relation() -> None:
    data = graph()
    chart = eamp.diagnose(Network(data, 3), data).plot(["energy"]).to_dict()
    assert chart["concat"][0]["layer"][-1]["encoding"]["color"]["field"] == "relation"


def test_models_that_cannot_be_measured_say_why() -> None:
    data = graph()
    with pytest.raises(ValueError, match="without labels and Jacobians"):
        eamp.diagnose(Network(data, 2), data, jacobians=True)
    with pytest.raises(TypeError, match="HeteroData"):
        eamp.diagnose(Network(data, 2), data.x_dict)

    class Plain(Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv((-1, -1), 8)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x, edge_index)

    converted = to_hetero(Plain(), data.metadata())
    with pytest.raises(TypeError, match=r"the probe .* to_hetero .*HeteroConv"):
        eamp.probe(converted)
    with pytest.raises(TypeError, match="to_hetero"):
        eamp.diagnose(converted, data)


def test_a_relation_whose_types_have_two_widths_is_left_out() -> None:
    data = graph()
    widths = {"paper": 8, "author": 4}
    conv = HeteroConv({e: SAGEConv((-1, -1), widths[e[2]]) for e in data.edge_types})
    with eamp.probe(conv) as p:
        conv(data.x_dict, data.edge_index_dict)
    assert list(p.table()["relation"]) == ["paper cites paper"]


def test_a_homogeneous_layer_between_typed_ones_keeps_its_row() -> None:
    data = graph()

    class Mixed(Module):
        def __init__(self) -> None:
            super().__init__()
            self.typed, self.plain = Network(data, 1), GCNConv(16, 16)

        def forward(self, x: Any, edge_index: Any) -> Tensor:
            papers = self.typed(x, edge_index)["paper"]
            return self.plain(papers, edge_index[CITES])

    model = Mixed()
    with eamp.probe(model) as p:
        model(data.x_dict, data.edge_index_dict)
    table = p.table()
    assert list(table["layer"]) == [1, 1, 2]
    assert table["relation"].isna().tolist() == [False, False, True]
