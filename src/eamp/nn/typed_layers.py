"""The entropy step of layers over several types of nodes, such as PyG's ``HeteroConv``."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.nn import Module, ModuleDict
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, MessagePassing
from torch_geometric.nn.to_hetero_with_bases_transformer import HeteroBasisConv

from eamp.graph import Graph
from eamp.graph.relations import EdgeType, chosen_relations, types_of, words
from eamp.graph.typed_graph import check_widths
from eamp.graph.typed_graph_cache import typed_graph_for
from eamp.nn.step.options import EntropyStep


# Compiled code is interrupted here, because building a graph cannot be traced.
@torch.compiler.disable  # type: ignore[untyped-decorator]  # torch leaves it untyped
def add_typed_step(
    conv: Module,
    step: EntropyStep,
    out: Mapping[str, Tensor],
    edge_index: Any,
    with_step: Callable[[Tensor, Tensor, Graph], Tensor],
) -> dict[str, Tensor]:
    r"""Return the embeddings of all types, with :math:`\lambda \sum_r w_r T \nabla S_r` added.

    Args:
        conv: the layer.
        step: the options of the step.
        out: the layer's output.
        edge_index: its ``edge_index_dict``.
        with_step: a function of a base, an embedding and its graph that adds the step of the
            embedding to the base.
    """
    name = type(conv).__name__
    if not isinstance(out, Mapping):
        raise TypeError(
            "EntropyAware needs a layer that returns a dictionary of embeddings for a dictionary "
            f"of features, but {name} returned a {type(out).__name__}."
        )
    if not isinstance(edge_index, Mapping):
        raise TypeError(
            f"EntropyAware needs the edge_index_dict of {name} as its second argument, but got "
            f"{type(edge_index).__name__}; pass data.x_dict, data.edge_index_dict."
        )
    check_options(step)
    edge_types = edge_types_of(conv)
    typed = typed_graph_for(out, edge_index, edge_types, step.relations, step.symmetrize)
    if typed is None:
        return dict(out)
    at = typed.stack(out)
    at = at.detach() if step.detach else at
    change = with_step(torch.zeros_like(at), at, typed.graph)
    steps = typed.unstack(change)
    return {kind: each + steps[kind] if kind in steps else each for kind, each in out.items()}


def edge_types_of(conv: Module) -> list[EdgeType] | None:
    """Return the edge types that a layer is made for, or ``None`` if it does not say."""
    if isinstance(conv, HeteroConv):
        return list(conv.convs.keys())
    if isinstance(conv, HGTConv):
        return [tuple(each) for each in conv.edge_types]
    return [tuple(each) for each in conv.metadata[1]] if isinstance(conv, HANConv) else None


def check_typed(conv: Module, step: EntropyStep) -> None:
    """Raise an error for a layer, known before it runs, at which the step cannot be taken.

    Raises:
        GraphError: if a relation joins types that the layer gives no embeddings of one width.
        ValueError: for options of the step, and for layers that return no matrix.
    """
    edge_types = edge_types_of(conv)
    if edge_types is None:
        return
    check_options(step)
    if getattr(conv, "aggr", "sum") is None:
        raise ValueError(
            "HeteroConv(aggr=None) returns one matrix per relation, [num_nodes, relations, F], but "
            "the energy needs one embedding per node; pass aggr='sum' or 'mean'."
        )
    relations = chosen_relations(edge_types, step.relations)
    targets = {edge_type[2] for edge_type in edge_types}
    widths = output_widths(conv) if isinstance(conv, HeteroConv) else {}
    first: tuple[EdgeType, int] | None = None
    for relation in relations:
        kinds = types_of(relation)
        if missing := [kind for kind in kinds if kind not in targets]:
            raise ValueError(
                f"{type(conv).__name__} returns no embedding of {missing[0]!r}, because no edge "
                f"type points to it, and the energy of {words(relation)!r} needs one. Add the "
                "reverse edges with torch_geometric.transforms.ToUndirected(), choose other "
                "relations with relations=[...], or leave the layer out with skip=[...]."
            )
        known = [widths.get(kind) for kind in kinds]
        if None in known:
            continue
        check_widths(relation, known)  # type: ignore[arg-type]  # no width is None
        first = first or (relation, known[0])  # type: ignore[assignment]
        if first is not None and known[0] != first[1]:
            raise ValueError(
                f"relations must share one width, but {words(first[0])!r} has {first[1]} features "
                f"and {words(relation)!r} {known[0]}; choose those of one width with "
                "relations=[...]."
            )


def check_options(step: EntropyStep) -> None:
    """Raise an error for options that have no meaning over several types of nodes."""
    if step.placement != "output" or step.residual:
        raise ValueError(
            "a layer over several types of nodes takes the step at its output: its inputs have "
            "widths of their own. Leave out placement='input' and residual=True."
        )


def output_widths(conv: HeteroConv) -> dict[str, int | None]:
    """Return the width of every type's embedding; ``None`` where a layer does not tell its own."""
    by_type: dict[str, list[int | None]] = {}
    for (_, _, target), each in conv.convs.items():
        by_type.setdefault(target, []).append(output_width(each))
    widths: dict[str, int | None] = {}
    for kind, known in by_type.items():
        numbers = [width for width in known if width is not None]
        if len(numbers) < len(known):
            widths[kind] = None
        else:
            widths[kind] = sum(numbers) if conv.aggr == "cat" else numbers[0]
    return widths


def output_width(conv: Module) -> int | None:
    """Return the number of features that a layer of PyG returns, if it has the usual attributes."""
    width = getattr(conv, "out_channels", None)
    if not isinstance(width, int) or width < 1:
        return None
    heads = getattr(conv, "heads", 1)
    return width * heads if getattr(conv, "concat", False) and isinstance(heads, int) else width


def check_not_converted(model: Module, what: str) -> None:
    """Raise an error for a model that ``to_hetero`` or ``to_hetero_with_bases`` of PyG made."""
    for module in model.modules():
        if isinstance(module, GraphModule):
            inside = list(module.modules())
            if any(isinstance(child, HeteroBasisConv) for child in inside):
                raise TypeError(
                    f"{what} cannot use the layers of a model that to_hetero_with_bases made: they "
                    "are called with the relation of every edge, and not with features and an "
                    "edge_index. Build the model with torch_geometric.nn.HeteroConv instead."
                )
            if not any(isinstance(each, ModuleDict) and has_edge_types(each) for each in inside):
                continue
            raise TypeError(
                f"{what} cannot find the layers of a model that to_hetero made: it holds a layer "
                "per relation, and adds their outputs outside of any module, so no module returns "
                "an embedding. Build the model with torch_geometric.nn.HeteroConv instead."
            )


def has_edge_types(modules: ModuleDict) -> bool:
    """Return whether a dictionary holds a message-passing layer per edge type."""
    return any(
        isinstance(each, MessagePassing) and key.count("__") >= 2 for key, each in modules.items()
    )


def edge_types_of_layers(model: Module) -> dict[Module, EdgeType]:
    """Return the layers inside of every ``HeteroConv``, with the edge types that they are for."""
    typed = (module for module in model.modules() if isinstance(module, HeteroConv))
    return {layer: edge_type for each in typed for edge_type, layer in each.convs.items()}


def check_not_bipartite(layer: Module, name: str = "", edge_type: EdgeType | None = None) -> None:
    """Raise an error for a layer that is known to join two types of nodes.

    Args:
        layer: the layer.
        name: its name in the model.
        edge_type: the edge type that it is for, in a ``HeteroConv``.
    """
    width: Any = getattr(layer, "in_channels", None)
    pair = isinstance(width, tuple | list) and len(width) == 2
    of = ""
    if edge_type is not None and edge_type[0] != edge_type[2]:
        of = f", {edge_type[0]!r} and {edge_type[2]!r}"
    elif pair and min(width) > 0 and width[0] != width[1]:
        of = f", with {width[0]} and {width[1]} features"
    if of:
        raise TypeError(
            f"{name or 'the layer'} is a {type(layer).__name__} between two types of nodes{of}; it "
            "returns embeddings of one type, and the energy compares a node with its neighbours. "
            "Put it into a torch_geometric.nn.HeteroConv with the other direction and wrap that, "
            "or leave it out with skip=[...]."
        )
