"""Groups of processes on this machine, and the jobs that they run in the tests.

The processes import this module by its name.
"""

from __future__ import annotations

import copy
import os
import signal
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor

import eamp
from eamp import ops
from eamp.nn.models import MODELS
from eamp.scale import partitioned_graph
from eamp.scale.partition import metis
from eamp.scale.partitioned_graph import GraphPart, take_part
from eamp.scale.process_group import ProcessGroup
from eamp.training import PROTOCOLS, Epoch, TrainingWarning, train
from eamp.training.process import SingleProcess
from forked import context

# A lost process is noticed at once; the timeout allows for a busy machine.
TIMEOUT = timedelta(seconds=300)


def together(processes: int, job: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return the results of ``job`` on each of several processes that form a group.

    They find each other through a file, since a port might be taken.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, mp_context=context()) as pool,
    ):
        futures = [
            pool.submit(joined, rank, processes, folder, job, arguments)
            for rank in range(processes)
        ]
        return [future.result() for future in futures]


def joined(
    rank: int, processes: int, folder: str, job: Callable[..., Any], arguments: tuple[Any, ...]
) -> Any:
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder}/meeting",
        rank=rank,
        world_size=processes,
        timeout=TIMEOUT,
    )
    try:
        return job(*arguments)
    finally:
        dist.destroy_process_group()


def last_words(
    processes: int, job: Callable[..., Any], *arguments: Any
) -> list[tuple[int | None, str]]:
    """Return exit code and error of each of several processes, of which some may be killed."""
    with tempfile.TemporaryDirectory() as folder:
        given = [(rank, processes, folder, job, arguments) for rank in range(processes)]
        running = [context().Process(target=noted, args=one) for one in given]
        for process in running:
            process.start()
        for process in running:
            process.join()
        notes = [Path(folder, str(rank)) for rank in range(processes)]
        return [
            (process.exitcode, note.read_text() if note.exists() else "")
            for process, note in zip(running, notes, strict=True)
        ]


def noted(
    rank: int, processes: int, folder: str, job: Callable[..., Any], arguments: tuple[Any, ...]
) -> None:
    try:
        joined(rank, processes, folder, job, arguments)
    except Exception as error:
        Path(folder, str(rank)).write_text(f"{type(error).__name__}: {error}")


# --- Graphs ---------------------------------------------------------------------------------------


def weighted_graph(seed: int = 0) -> eamp.Graph:
    """Return a graph of 40 nodes with weighted edges, in which at least two nodes are isolated."""
    torch.manual_seed(seed)
    edges = torch.randint(38, (2, 90))
    weight = torch.rand(90, dtype=torch.float64) + 0.1
    return eamp.Graph(edges, 40, edge_weight=weight, symmetrize=True)


def own_part(graph: eamp.Graph) -> GraphPart:
    size = dist.get_world_size()
    return take_part(graph, metis(graph, size), dist.get_rank(), size)


def gathered(rows: Tensor, part: GraphPart) -> Tensor:
    """Return the rows of all processes, in the order of the whole graph."""
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, (part.rows.nodes, rows.detach()))
    whole = rows.new_zeros(part.total_nodes, *rows.shape[1:])
    for nodes, values in parts:
        whole[nodes] = values
    return whole


# --- Jobs -----------------------------------------------------------------------------------------

SUMS: dict[str, Callable[..., Tensor]] = {
    "squared": lambda x, y, q, g: ops.squared_differences(x, g),
    "inner": lambda x, y, q, g: ops.inner_differences(x, y, g),
    "weighted": lambda x, y, q, g: (
        ops.weighted_differences(q, x, g) + ops.weighted_differences(q * q, y, g)
    ),
    "neighbours": lambda x, y, q, g: ops.neighbour_sums(
        (g.degree + 1).rsqrt(), x, g.degree + 2, g, self_loops=True
    ),
    "mixed": lambda x, y, q, g: ops.neighbour_sums(
        g.degree + 2, x, g.degree + 1, g, mixed_in=y, share=0.3
    ),
    "channels": lambda x, y, q, g: ops.channel_squares(x, g),
    "step": lambda x, y, q, g: ops.entropy_step(x, g, (q * 0).sum() + 0.7, 1.3)[0],
    "energy": lambda x, y, q, g: ops.entropy_step(x, g, 0.7)[1],
}
# One number on all processes, each of which has a share of the loss that is made of it.
STATISTICS: dict[str, Callable[..., Tensor]] = {
    "mean": lambda x, y, q, g: g.mean(q * q),
    "total": lambda x, y, q, g: g.total(x * y).prod(),
    "largest": lambda x, y, q, g: g.largest(with_ties(q)),
    "relative energy": lambda x, y, q, g: eamp.diagnostics.relative_energy(x, g),
    "mean average distance": lambda x, y, q, g: eamp.diagnostics.mad(x, g),
}


def with_ties(q: Tensor) -> Tensor:
    """Return whole numbers, several of which are the largest, with the derivatives of ``q``."""
    return q - q.detach() + q.detach().round().abs().clamp(max=1)


def sums_and_derivatives() -> dict[str, float]:
    """Return how much sums and their first and second derivatives differ from the whole graph's."""
    graph = weighted_graph()
    part = own_part(graph)
    nodes = part.rows.nodes
    torch.manual_seed(1)
    shapes = ((40, 3), (40, 3), (40,))
    whole = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    direction = [torch.randn_like(values) for values in whole]
    weights = torch.randn(40, 3, dtype=torch.float64)
    share = weights[:1] / dist.get_world_size()
    found = {}
    for name, function in (SUMS | STATISTICS).items():
        wanted = twice(function, whole, weights, direction, graph)
        own = [values[nodes] for values in whole]
        own_weights = share if name in STATISTICS else weights[nodes]
        got = twice(function, own, own_weights, [values[nodes] for values in direction], part)
        found[name] = max(
            float(((gathered(a, part) if a.dim() else a) - b).detach().abs().max())
            for a, b in zip(got, wanted, strict=True)
        )
    return found


def twice(
    function: Any, given: list[Tensor], weights: Tensor, direction: list[Tensor], graph: eamp.Graph
) -> list[Tensor]:
    """Return a sum, the derivatives of its weighted sum, and theirs in a direction."""
    given = [values.clone().requires_grad_() for values in given]
    value = function(*given, graph)
    weights = weights if value.dim() == 2 else weights[:, 0] if value.dim() else weights[0, 0]
    first = derivatives((value * weights).sum(), given, create_graph=True)
    along = sum((f * d).sum() for f, d in zip(first, direction, strict=True))
    return [value, *first, *derivatives(along, given)]


def derivatives(value: Any, given: list[Tensor], **options: Any) -> list[Tensor]:
    """Return the derivatives of ``value``, zeros for tensors that it does not depend on."""
    if not value.requires_grad:
        return [torch.zeros_like(values) for values in given]
    found = torch.autograd.grad(value, given, allow_unused=True, **options)
    pairs = zip(found, given, strict=True)
    return [torch.zeros_like(values) if f is None else f for f, values in pairs]


def model_differences(settings: list[dict[str, Any]]) -> dict[str, float]:
    """Return how much logits and gradients of models on parts differ from the whole graph's.

    Differences are relative to the largest gradient: some gradients are 0 but for rounding.
    """
    data = eamp.data.load("csbm:nodes=60,features=6,classes=3")
    graph = eamp.Graph(data.edge_index, 60)
    part = own_part(graph)
    nodes, found = part.rows.nodes, {}
    for given in settings:
        setting = dict(given)
        torch.manual_seed(0)
        model = MODELS[setting.pop("model")](6, 8, 3, 3, **setting).double()
        alone = copy.deepcopy(model)
        expected = alone(data.x.double(), graph)
        F.cross_entropy(expected, data.y).backward()
        logits = model(data.x.double()[nodes], part)
        (F.cross_entropy(logits, data.y[nodes], reduction="sum") / 60).backward()
        ProcessGroup().add_gradients(model)
        pairs = [(gathered(logits, part), expected.detach())]
        pairs += [
            (p.grad, q.grad)
            for p, q in zip(model.parameters(), alone.parameters(), strict=True)
            if q.grad is not None
        ]
        largest = max(float(b.abs().max()) for _, b in pairs[1:])
        found[str(given)] = max(float((a - b).abs().max()) for a, b in pairs) / min(largest, 1.0)
    return found


def trained(
    settings: dict[str, Any],
    epochs: int,
    dtype: torch.dtype,
    checkpoint: str | None = None,
    dies: int | None = None,
    every: int = 5,
) -> tuple[list[Epoch], list[float], list[float]]:
    """Return history, parameters and layer energies after training, in one process or several.

    Process 1 is killed after epoch ``dies``.
    """
    settings = {"metric": "accuracy", "classes": 3, **settings}
    metric, classes = settings.pop("metric"), settings.pop("classes")
    data = eamp.data.load(f"csbm:nodes=80,features=6,classes={classes},label_rate=0.2").clone()
    data.x = data.x.to(dtype)
    if settings.pop("sparse", False):
        kept = torch.rand(data.x.shape, generator=torch.Generator().manual_seed(1)) < 0.04
        data.x = torch.where(kept, data.x, 0.0)
    if (labels := settings.pop("labels", None)) is not None:  # several, some of them missing
        data.y = data.x[:, :classes].clone() if labels == "numbers" else data.x[:, :classes] > 0
        data.y = data.y if labels == "numbers" else data.y.long()
        data.y[::3, 0] = torch.nan if labels == "numbers" else -1
    changes = settings.pop("changes", {})
    torch.manual_seed(0)
    model = MODELS[settings.pop("model")](6, 8, classes, 3, **settings).to(dtype)
    changes = {"epochs": epochs, "patience": None, "metric": metric, **changes}
    rules = PROTOCOLS["standard"].with_changes(**changes)

    def after(epoch: int, figures: Epoch) -> None:
        if epoch == dies and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    result = train(
        model,
        data,
        rules,
        process=ProcessGroup() if dist.is_initialized() else SingleProcess(),
        checkpoint=None if checkpoint is None else Path(checkpoint),
        checkpoint_every=every,
        on_epoch=after,
    )
    parameters = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    history = [tuple(row) for row in result.history]
    return history, parameters.tolist(), result.energy + result.final_energy


def started_differently(changes: list[dict[str, Any]]) -> list[str]:
    """Return the errors of runs on two processes, the second of which has other settings."""
    said = []
    for change in changes:
        given: dict[str, Any] = {"epochs": 2, "dropout": 0.0, "width": 8, "seeds": 1}
        given |= {"data": "csbm:nodes=60,features=6,classes=3"}
        given |= change if dist.get_rank() else {}
        model = MODELS["gcn"](6, given["width"], 3, 2, dropout=given["dropout"])
        rules = PROTOCOLS["paper"].with_changes(epochs=given["epochs"])
        process = ProcessGroup()
        try:
            process.agree({"seeds": given["seeds"]})
            train(model, eamp.data.load(given["data"]), rules, process=process)
        except ValueError as error:
            said.append(str(error))
    return said


def gathered_by_the_group() -> list[Any]:
    """Return rows of all processes, of which process 0 has none, and rows that no process has."""
    rank, group = dist.get_rank(), ProcessGroup()
    rows = torch.full((rank, 2), float(rank)).requires_grad_()
    found = group.gather(rows), group.gather(torch.arange(rank)), group.gather(torch.ones(0))
    return [not any(each.requires_grad for each in found), *(each.tolist() for each in found)]


def warned(job: Callable[..., Any], *arguments: Any) -> tuple[str, Any]:
    """Return the warnings of a job, and its result."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TrainingWarning)
        result = job(*arguments)
    return "\n".join(str(each.message) for each in caught), result


def measured_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    """Return the bytes that a training step moves to and from a process's halo, and its size."""
    settings = dict(settings)
    data = eamp.data.load("csbm:nodes=60,features=6,classes=3")
    part = own_part(eamp.Graph(data.edge_index, 60))
    model = MODELS[settings.pop("model")](6, 8, 3, 3, **settings)
    seen: list[int] = []
    swapped = partitioned_graph.swapped

    def counting(rows: Tensor, sent: list[int], received: list[int]) -> Tensor:
        arrived = swapped(rows, sent, received)
        seen.append((arrived if received is part.received else rows).nbytes)  # the rows of the halo
        return arrived

    with mock.patch.object(partitioned_graph, "swapped", counting):
        model(data.x[part.rows.nodes], part).sum().backward()
    return sum(seen), part.halo_size
