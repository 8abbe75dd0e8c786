"""``LinkTask``: which pairs of nodes are linked."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.utils import negative_sampling

from eamp.data.seeding import mixed, seeded
from eamp.graph import Graph
from eamp.nn.models.traits import traits
from eamp.training.digests import LINKS, data_digest, joint_digest
from eamp.training.inputs import first_output
from eamp.training.process import SingleProcess
from eamp.training.protocols import Protocol
from eamp.training.sparse_features import sparse_features
from eamp.training.targets import resolved, target_of
from eamp.training.tasks.task import PARTS, Part, Task, call_on, copy_of_state, require_one_process


class LinkTask(Task):
    """Pairs of nodes, linked or not: an epoch is one step on all training links.

    The score of a pair is the product of the two nodes' outputs, and the loss is the binary
    cross-entropy. Every epoch draws as many pairs without a link as there are training links.

    Args:
        parts: the three graphs of PyG's ``RandomLinkSplit``. Messages pass along ``edge_index``;
            the pairs are ``edge_label_index``, and ``edge_label`` is 1 for a link and 0 otherwise.
        protocol: the settings of the run.
    """

    name = "links"

    def __init__(self, parts: Sequence[Data], protocol: Protocol) -> None:
        self.parts = dict(zip(PARTS, parts, strict=True))
        for name, data in self.parts.items():
            check_links(name, data)
        train = self.parts["train"]
        self.links = train.edge_label_index[:, train.edge_label > 0]
        self.target = target_of(train.edge_label.view(-1, 1).long(), protocol)
        if self.target.kind != "labels":
            raise ValueError(
                f"the metric {protocol.metric} is for regression, but links are there or not; use "
                "metric roc_auc or average_precision."
            )
        self.num_features = train.num_features
        self.protocol = resolved(protocol, self.target)

    @cached_property
    def digest(self) -> str:
        """The digest of the three graphs and their pairs."""
        return joint_digest({name: data_digest(data, LINKS) for name, data in self.parts.items()})

    def start(self, model: Module, process: SingleProcess, seed: int) -> None:
        """Take the model, and make the graphs that messages pass along."""
        require_one_process(process, "link prediction")
        self.model, self.process, self.seed, self.told = model, process, seed, traits(model)
        data = self.parts["train"]
        self.x = sparse_features(data.x) if self.told.takes_sparse_features else data.x
        self.runs: dict[str, Callable[[Tensor], Tensor]] = {}
        for name, part in self.parts.items():
            if name != "train" and torch.equal(part.edge_index, data.edge_index):
                self.runs[name] = self.runs["train"]
            else:
                graph = Graph(part.edge_index, part.num_nodes, edge_weight=part.edge_weight)
                self.runs[name] = call_on(model, graph)
        state = copy_of_state(model)
        with torch.no_grad():
            first_output(self.example, self.num_features)
        model.load_state_dict(state)  # calibrated temperatures may have changed

    def batches(self, epoch: int) -> Iterable[tuple[Tensor, Tensor]]:
        """Return one batch: the training links, and as many pairs without a link."""
        data, count = self.parts["train"], self.links.size(1)
        with seeded(mixed(self.seed, epoch)):
            others = negative_sampling(data.edge_index, data.num_nodes, num_neg_samples=count)
        pairs = torch.cat([self.links, others], dim=1)
        return ((pairs, (torch.arange(pairs.size(1)) < count).float().unsqueeze(1)),)

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Return the loss over linked and other pairs, with the auxiliary loss of the model."""
        pairs, y = batch
        out = pair_scores(self.runs["train"](self.x), pairs)
        loss = self.target.loss(out, y.to(out.device), self.protocol, self.process)
        return loss if self.told.auxiliary_loss is None else loss + self.told.auxiliary_loss()

    @torch.no_grad()
    def outputs(self, part: Part) -> tuple[Tensor, Tensor]:
        """Return the scores and labels of validation or test pairs."""
        self.model.eval()
        data = self.parts[part]
        out = pair_scores(self.runs[part](self.x), data.edge_label_index)
        return out, data.edge_label.float().view(-1, 1)

    def example(self) -> Tensor:
        """Call the model on the training graph."""
        self.model.eval()
        return self.runs["train"](self.x)


def pair_scores(z: Tensor, pairs: Tensor) -> Tensor:
    """Return the dot products of the outputs of pairs of nodes, ``[pairs, 1]``.

    Example:
        >>> pair_scores(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0], [1]]))
        tensor([[11.]])
    """
    return (z[pairs[0]] * z[pairs[1]]).sum(1, keepdim=True)


def check_links(name: str, data: Data) -> None:
    """Raise a ValueError unless a graph has features, edges, and pairs with and without a link."""
    needed = ("x", "edge_index", "edge_label", "edge_label_index")
    if missing := [each for each in needed if not isinstance(data.get(each), Tensor)]:
        raise ValueError(
            f"the {name} part has no {', '.join(missing)}; link prediction needs "
            f"{', '.join(needed)}, as eamp.data.link_split(data) makes them."
        )
    found = data.edge_label.unique().tolist()
    expected = [[1.0], [0.0, 1.0]] if name == "train" else [[0.0, 1.0]]
    if found not in expected:
        raise ValueError(
            f"edge_label of the {name} part must hold 1 for links and 0 for other pairs, but holds "
            f"{found}; eamp.data.link_split(data) draws both."
        )
