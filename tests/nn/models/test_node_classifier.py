import torch
from torch import Tensor
from torch.nn import Linear, ModuleList

import eamp
from eamp.nn import GCNConv
from eamp.nn.models.node_classifier import NodeClassifier, entropic_layers
from eamp.nn.step.layer_state import Position
from problems import irregular_graph


class Small(NodeClassifier):
    def __init__(self, num_layers: int, dropout: float = 0.0, checkpoint: bool = False) -> None:
        super().__init__(num_layers, dropout, checkpoint)
        self.output = Linear(4, 3)
        self.blocks = ModuleList(ModuleList([Linear(4, 4)]) for _ in range(num_layers))

    def forward(self, x: Tensor, edge_index: eamp.Graph) -> Tensor:
        x = self.run(lambda x, block: block[0](self.drop(x, edge_index)).relu(), self.blocks, x)
        return self.output(x)


def test_resets_every_layer_in_the_order_of_registration() -> None:
    model = Small(2)
    torch.manual_seed(3)
    model.reset_parameters()
    torch.manual_seed(3)
    for layer in (model.output, model.blocks[0][0], model.blocks[1][0]):
        assert torch.equal(layer.weight, (fresh := Linear(4, layer.out_features)).weight)
        assert torch.equal(layer.bias, fresh.bias)


def test_checkpoints_change_the_memory_and_not_the_result() -> None:
    x, results, kept = torch.randn(10, 4), [], []
    for checkpoint in (False, True):
        torch.manual_seed(0)
        model, saved = Small(16, 0.4, checkpoint), []
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, s=saved: s.append(t) or t, lambda t: t
        ):
            logits = model(x, irregular_graph())
        logits.sum().backward()
        results.append([logits.detach(), *(parameter.grad for parameter in model.parameters())])
        kept.append(len(saved))
    assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    assert kept[1] < 0.5 * kept[0]


def test_drops_in_training_only() -> None:
    model, x, graph = Small(1, dropout=0.5), torch.ones(10, 40), irregular_graph()
    assert set(model.drop(x, graph).unique().tolist()) == {0.0, 2.0}
    assert model.eval().drop(x, graph) is x


def test_layers_get_the_step_and_a_number() -> None:
    convs = [GCNConv(4, 4), GCNConv(4, 4)]
    assert list(entropic_layers(convs, None)) == convs
    layers = entropic_layers(convs, {"weight": 0.5})
    assert [layer.conv for layer in layers] == convs
    assert [layer.position for layer in layers] == [Position(1, 2), Position(2, 2)]
