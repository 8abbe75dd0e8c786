"""Processes on this machine that train together, and what they do in the tests. Children import this module by its name."""

from __future__ import annotations

import copy
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F

import eamp
from eamp import ops
from eamp.nn.models import MODELS
from eamp.scale.partition import metis
from eamp.scale.partitioned_graph import take_part
from eamp.scale.process_group import Alone, Peers
from eamp.training import PROTOCOLS, Epoch, train

TIMEOUT = timedelta(
    seconds=300
)  # a lost process is noticed at once; this is for a machine that is busy


def together(processes: int, job: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What ``job`` returns on each of several processes that form a group. They meet at a file: no port can be taken."""
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(processes, mp_context=context()) as pool,
    ):
        futures = [
            pool.submit(joined, rank, processes, folder, job, arguments)
            for rank in range(processes)
        ]
        return [future.result() for future in futures]


def context() -> Any:
    """A server that has imported once what is heavy forks the processes. It looks for installed modules alone, not for this one."""
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(
        [
            "eamp.training",
            "eamp.scale.part_models",
            "eamp.ops.backends.numba_cpu.launch",
            "eamp.data.synthetic",
            "pymetis",
        ]
    )
    return found


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
    """The exit code and the error of each of several processes, of which some may be killed."""
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


# --- Graphs -----------------------------------------------------------------------------------------------------------


def weighted_graph(seed: int = 0) -> eamp.Graph:
    """40 nodes, weighted edges, two of the nodes isolated."""
    torch.manual_seed(seed)
    edges = torch.randint(38, (2, 90))
    return eamp.Graph(
        edges, 40, edge_weight=torch.rand(90, dtype=torch.float64) + 0.1, symmetrize=True
    )


def own_part(graph: eamp.Graph) -> Any:
    return take_part(
        graph, metis(graph, dist.get_world_size()), dist.get_rank(), dist.get_world_size()
    )


def gathered(rows: torch.Tensor, part: Any) -> torch.Tensor:
    """Rows of all processes, in the order of the whole graph."""
    parts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(parts, (part.csr.nodes, rows.detach()))
    whole = rows.new_zeros(part.csr.num_nodes, *rows.shape[1:])
    for nodes, values in parts:
        whole[nodes] = values
    return whole


# --- Jobs -------------------------------------------------------------------------------------------------------------

SUMS: dict[str, Callable[..., torch.Tensor]] = {
    "squared": lambda x, y, q, csr: ops.squared_differences(x, csr),
    "inner": lambda x, y, q, csr: ops.inner_differences(x, y, csr),
    "weighted": lambda x, y, q, csr: ops.weighted_differences(q, x, csr, q * q, y),
    "neighbours": lambda x, y, q, csr: ops.neighbour_sums(
        (csr.degree + 1).rsqrt(), x, csr.degree + 2, csr, self_loops=True
    ),
    "channels": lambda x, y, q, csr: ops.channel_squares(x, csr),
    "step": lambda x, y, q, csr: ops.entropy_step(x, csr, (q * 0).sum() + 0.7, 1.3)[0],
    "energy": lambda x, y, q, csr: ops.entropy_step(x, csr, 0.7)[1],
    "mean": lambda x, y, q, csr: ops.node_mean(q * q, csr).expand(1),
}


def sums_and_derivatives() -> dict[str, float]:
    """Every sum over edges, its derivatives and theirs: the largest difference from the whole graph."""
    graph = weighted_graph()
    part = own_part(graph)
    torch.manual_seed(1)
    whole = [
        torch.randn(40, 3, dtype=torch.float64),
        torch.randn(40, 3, dtype=torch.float64),
        torch.randn(40, dtype=torch.float64),
    ]
    direction = [torch.randn_like(values) for values in whole]
    weights = torch.randn(40, 3, dtype=torch.float64)
    found = {}
    for name, function in SUMS.items():
        wanted = twice(function, whole, weights, direction, graph.csr, name == "mean")
        own = [values[part.csr.nodes] for values in whole]
        single = (
            name == "mean"
        )  # the same number on all processes, each of which has a share in what becomes of it
        own_weights = weights / dist.get_world_size() if single else weights[part.csr.nodes]
        got = twice(
            function, own, own_weights, [d[part.csr.nodes] for d in direction], part.csr, single
        )
        found[name] = max(
            float((gathered(a, part) - b.detach()).abs().max())
            for a, b in zip(got, wanted, strict=True)
        )
    return found


def twice(
    function: Any, given: Any, weights: torch.Tensor, direction: Any, csr: Any, single: bool
) -> list[torch.Tensor]:
    """A sum's value, the derivatives of what it is weighted with, and the derivatives of those in a direction."""
    given = [values.clone().requires_grad_() for values in given]
    value = function(*given, csr)
    weights = weights[:1, 0] if single else weights if value.dim() == 2 else weights[:, 0]
    first = torch.autograd.grad(
        (value * weights).sum(), given, create_graph=True, allow_unused=True
    )
    first = [torch.zeros_like(g) if f is None else f for f, g in zip(first, given, strict=True)]
    along = sum((f * d).sum() for f, d in zip(first, direction, strict=True))
    second = (
        torch.autograd.grad(along, given, allow_unused=True) if along.requires_grad else [None] * 3
    )
    values = [] if single else [value]
    return [
        *values,
        *first,
        *(torch.zeros_like(g) if s is None else s for s, g in zip(second, given, strict=True)),
    ]


def model_differences(settings: list[dict[str, Any]]) -> dict[str, float]:
    """Logits and gradients of models on parts: the largest difference from the whole graph, relative to the largest value."""
    data = eamp.data.load("csbm:nodes=60,features=6,classes=3")
    graph = eamp.Graph(data.edge_index, 60)
    part = own_part(graph)
    found = {}
    for given in settings:
        setting = dict(given)
        torch.manual_seed(0)
        model = MODELS[setting.pop("model")](6, 8, 3, 3, **setting).double()
        alone = copy.deepcopy(model)
        expected = alone(data.x.double(), graph)
        F.cross_entropy(expected, data.y).backward()
        logits = model(data.x.double()[part.csr.nodes], part)
        (F.cross_entropy(logits, data.y[part.csr.nodes], reduction="sum") / 60).backward()
        Peers().add_gradients(model)
        pairs = [(gathered(logits, part), expected.detach())]
        pairs += [
            (p.grad, q.grad)
            for p, q in zip(model.parameters(), alone.parameters(), strict=True)
            if q.grad is not None
        ]
        largest = max(
            float(b.abs().max()) for _, b in pairs[1:]
        )  # of all gradients: some are 0 but for rounding
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
    """History, parameters and layer energies after training, alone or with others; process 1 is killed after epoch ``dies``."""
    settings = dict(settings)
    data = eamp.data.load("csbm:nodes=80,features=6,classes=3,label_rate=0.2").clone()
    data.x = data.x.to(dtype)
    if settings.pop("sparse", False):
        data.x = torch.where(
            torch.rand(data.x.shape, generator=torch.Generator().manual_seed(1)) < 0.04, data.x, 0.0
        )
    torch.manual_seed(0)
    model = MODELS[settings.pop("model")](6, 8, 3, 3, **settings).to(dtype)
    rules = PROTOCOLS["standard"].with_changes(epochs=epochs, patience=None)
    group = Peers() if dist.is_initialized() else nullcontext(Alone())

    def after(epoch: int, figures: Epoch) -> None:
        if epoch == dies and dist.get_rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    path = None if checkpoint is None else Path(checkpoint)
    with group as peers:
        result = train(
            model, data, rules, peers=peers, checkpoint=path, checkpoint_every=every, on_epoch=after
        )
    parameters = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    return (
        [tuple(row) for row in result.history],
        parameters.tolist(),
        result.energy + result.final_energy,
    )


def measured_bytes(settings: dict[str, Any]) -> tuple[int, int]:
    """Bytes that this process receives at its halo in a step of training, and how many rows the halo has."""
    settings = dict(settings)
    data = eamp.data.load("csbm:nodes=60,features=6,classes=3")
    part = own_part(eamp.Graph(data.edge_index, 60))
    model = MODELS[settings.pop("model")](6, 8, 3, 3, **settings)
    seen: list[int] = []
    transport, received = part.csr.exchange.transport, part.csr.exchange.routes.received

    def counting(rows: torch.Tensor, sends: list[int], receives: list[int]) -> torch.Tensor:
        arrived: torch.Tensor = transport(rows, sends, receives)
        seen.append(
            (arrived if receives is received else rows).nbytes
        )  # the rows of the halo, on their way here or back
        return arrived

    part.csr.exchange.transport = counting
    model(data.x[part.csr.nodes], part).sum().backward()
    return sum(seen), part.halo_size
