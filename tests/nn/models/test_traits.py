import pytest
import torch
from torch import Tensor
from torch.nn import Linear

from eamp.nn import EGNN, GCN, MODELS
from eamp.nn.models.traits import traits


class Own(Linear):
    """A model of a user, which subclasses nothing of eamp."""

    probed_layers = ("first", "last")
    runs_on_parts = True

    def auxiliary_loss(self) -> Tensor:
        return self.weight.sum()


def test_missing_traits_have_defaults() -> None:
    plain = traits(Linear(2, 2))
    assert (plain.takes_sparse_features, plain.runs_on_parts) == (False, False)
    assert (plain.probed_layers, plain.auxiliary_loss) == (None, None)


def test_are_read_from_any_module() -> None:
    model = Own(2, 2)
    own = traits(model)
    assert own.probed_layers == ("first", "last")
    assert own.runs_on_parts
    assert not own.takes_sparse_features
    assert own.auxiliary_loss is not None
    assert torch.equal(own.auxiliary_loss(), model.weight.sum())
    model.runs_on_parts = False
    assert not traits(model).runs_on_parts


def test_see_through_a_compiled_model() -> None:
    assert traits(torch.compile(GCN(4, 8, 3, 2))).takes_sparse_features
    loss = traits(torch.compile(EGNN(4, 8, 3, 2))).auxiliary_loss
    assert loss is not None
    assert loss() == 0


@pytest.mark.parametrize("name", MODELS)
def test_of_the_models(name: str) -> None:
    model = traits(MODELS[name](4, 8, 3, 2))
    dense = ("noisy-gcn", "gat", "graphsage", "gin")
    assert model.takes_sparse_features == (name not in dense)
    assert (model.auxiliary_loss is not None) == (name in ("egnn", "noisy-gcn"))
    assert model.probed_layers == ("conv" if name == "g2" else None)
