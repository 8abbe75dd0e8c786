import torch
from torch import Tensor

import eamp
from eamp.nn.residual_gcn import ResidualGCN
from problems import irregular_graph


def test_blocks_without_weights_pass_the_input_through() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model, empty = ResidualGCN(5, 8, 3, num_layers=6), ResidualGCN(5, 8, 3, num_layers=0)
    empty.load_state_dict(model.state_dict(), strict=False)
    for block in model.blocks:
        torch.nn.init.zeros_(block.conv.lin.weight)
    assert torch.equal(model(x, graph), empty(x, graph))


def test_block_is_norm_relu_conv_add() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = ResidualGCN(5, 8, 3, num_layers=1)
    h, block = model.encoder(x), model.blocks[0]
    h = h + block.conv(block.norm(h).relu(), graph)
    torch.testing.assert_close(model(x, graph), model.decoder(model.norm(h).relu()))


def test_checkpointing_changes_memory_and_not_results() -> None:
    graph, x = irregular_graph(), torch.randn(10, 5)
    results, kept = [], []
    for checkpoint in (False, True):
        numbers = 0

        def count(tensor: Tensor) -> Tensor:
            nonlocal numbers
            numbers += tensor.numel()
            return tensor

        torch.manual_seed(0)  # dropout is drawn again in the backward pass, and must come out the same
        model = ResidualGCN(5, 16, 3, 12, dropout=0.5, checkpoint=checkpoint, entropy={"weight": 0.1, "temperature": 1.0, "detach": False})
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            logits = model(x, graph)
        kept.append(numbers)
        logits.sum().backward()
        results.append([logits.detach(), *(parameter.grad for parameter in model.parameters())])
    torch.testing.assert_close(results[0], results[1])
    assert kept[1] < kept[0] / 3


def test_checkpointed_blocks_compile() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = ResidualGCN(5, 8, 3, num_layers=2, checkpoint=True)
    torch.compiler.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, graph.edge_index), model(x, graph))


def test_can_be_wrapped_and_unwrapped() -> None:
    torch.manual_seed(0)
    x, graph = torch.randn(10, 5), irregular_graph()
    model = ResidualGCN(5, 8, 3, num_layers=2)
    before = model(x, graph)
    wrapped = eamp.wrap(model, weight=1.0, temperature=1.0)
    assert not torch.equal(wrapped(x, graph), before)
    assert torch.equal(eamp.unwrap(wrapped)(x, graph), before)
