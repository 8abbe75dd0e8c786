import copy
import io
import pickle

import pytest
import torch
from torch import Tensor
from torch.nn import ReLU
from torch_geometric.nn import GAT, GCN, GIN, DeepGCNLayer, GraphSAGE, SAGEConv

import eamp
from eamp.nn.wrapped_class import own_class
from eamp.scale.part_models import check_model
from problems import irregular_graph

GRAPH = irregular_graph()
X = torch.randn(10, 8, generator=torch.Generator().manual_seed(0))
MODELS = {
    "GCN": lambda: GCN(8, 16, num_layers=3),
    "GAT": lambda: GAT(8, 16, num_layers=3),
    "GIN": lambda: GIN(8, 16, num_layers=3),
    "GraphSAGE": lambda: GraphSAGE(8, 16, num_layers=3),
    "DeepGCNLayer": lambda: DeepGCNLayer(SAGEConv(8, 8), torch.nn.LayerNorm(8), ReLU()),
}


class Nested(torch.nn.Module):
    """A user's model with one of PyG's inside."""

    def __init__(self) -> None:
        super().__init__()
        self.body = GCN(8, 16, num_layers=3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.body(x, edge_index)


class Loud(GCN):
    """A user's model with a ``repr`` of its own."""

    def __repr__(self) -> str:
        return "LOUD"


@pytest.mark.parametrize("name", MODELS)
def test_models_of_one_line_show_their_steps_until_they_are_unwrapped(name: str) -> None:
    model = MODELS[name]()
    own, line = type(model), repr(model)
    assert "\n" not in line
    wrapped = eamp.wrap(model, weight=0.5)
    assert wrapped is model
    assert isinstance(wrapped, own)
    assert own_class(wrapped) is own
    assert repr(wrapped).startswith(f"EntropyAware{own.__name__}(\n")
    assert "weight=0.5" in repr(wrapped)
    shown = repr(wrapped)
    assert repr(eamp.wrap(model, weight=0.5)) == shown  # wrapped again, nothing changes
    assert type(eamp.unwrap(model)) is own
    assert repr(model) == line


def test_a_model_inside_a_model_shows_its_steps() -> None:
    model = Nested()
    assert "EntropyAware(" in repr(eamp.wrap(model))
    assert type(model) is Nested
    assert type(eamp.unwrap(model).body) is GCN


def test_a_repr_of_the_users_own_stays() -> None:
    model = eamp.wrap(Loud(8, 16, num_layers=3))
    assert (repr(model), type(model)) == ("LOUD", Loud)


def test_a_class_that_another_library_makes_of_it_is_left_alone() -> None:
    model = eamp.wrap(MODELS["GCN"]())
    model.__class__ = type("Sharded", (type(model),), {})  # as torch's fully_shard does
    twin = eamp.unwrap(copy.deepcopy(eamp.wrap(model)))
    assert type(twin) is type(model)
    assert repr(twin) == "Sharded(8, 16, num_layers=3)"


def test_a_new_instance_of_the_class_without_steps_prints_the_line_of_pyg() -> None:
    assert "num_layers=2)" in repr(type(eamp.wrap(MODELS["GCN"]()))(8, 16, num_layers=2))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_wrapped_models_are_pickled(protocol: int) -> None:
    model = eamp.wrap(MODELS["GCN"]()).eval()
    twin = pickle.loads(pickle.dumps(model, protocol))
    assert type(twin) is type(model)
    assert repr(twin) == repr(model)
    assert torch.equal(twin(X, GRAPH.edge_index), model(X, GRAPH.edge_index))
    assert type(eamp.unwrap(twin)) is GCN
    assert type(model) is not GCN


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_wrapped_models_are_copied(duplicate: type) -> None:
    model = eamp.wrap(MODELS["GCN"]()).eval()
    twin = duplicate(model)
    assert (type(twin), repr(twin)) == (type(model), repr(model))
    assert torch.equal(twin(X, GRAPH.edge_index), model(X, GRAPH.edge_index))


def test_wrapped_models_are_saved_whole_and_by_their_weights() -> None:
    model, file = eamp.wrap(MODELS["GCN"]()).eval(), io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    twin = torch.load(file, weights_only=False)
    assert repr(twin) == repr(model)
    fresh = eamp.wrap(MODELS["GCN"]()).eval()
    fresh.load_state_dict(twin.state_dict())
    assert torch.equal(fresh(X, GRAPH.edge_index), model(X, GRAPH.edge_index))


def test_a_wrapped_block_may_run_on_parts_as_before() -> None:
    block = DeepGCNLayer(eamp.nn.GCNConv(8, 8), torch.nn.LayerNorm(8), ReLU())
    check_model(eamp.wrap(block))
