import torch

import eamp
from eamp.nn.models.residual_gcn import ResidualGCN
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
