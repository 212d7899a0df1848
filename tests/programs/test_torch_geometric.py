"""Graphs of torch_geometric: message passing, whose scatters are PyTorch's ops."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from programs.training_steps import Batch, check
from xpurt.testing.oracle import agree

geometric = pytest.importorskip("torch_geometric")
graph_nn = pytest.importorskip("torch_geometric.nn")
utils = pytest.importorskip("torch_geometric.utils")
Data = pytest.importorskip("torch_geometric.data").Data
DataLoader = pytest.importorskip("torch_geometric.loader").DataLoader

NODES = 20
EDGES = torch.randint(0, NODES, (2, 70), generator=torch.Generator().manual_seed(0))
CONVOLUTIONS = {
    "GCN": lambda a, b: graph_nn.GCNConv(a, b),
    "GAT": lambda a, b: graph_nn.GATConv(a, b, heads=2, concat=False),
    "GATv2": lambda a, b: graph_nn.GATv2Conv(a, b),
    "SAGE": lambda a, b: graph_nn.SAGEConv(a, b, aggr="max"),
    "GIN": lambda a, b: graph_nn.GINConv(nn.Linear(a, b)),
    "Transformer": lambda a, b: graph_nn.TransformerConv(a, b, heads=2, concat=False),
    "PNA": lambda a, b: graph_nn.PNAConv(
        a, b, ["mean", "std", "min"], ["identity"], torch.tensor([0, 1, 5, 9, 5])
    ),
}


class Network(nn.Module):
    """Two convolutions, and a class for each node."""

    def __init__(self, name: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = CONVOLUTIONS[name](6, 8)
        self.second = CONVOLUTIONS[name](8, 3)

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        found: Tensor = self.second(self.first(x, edges).relu(), edges)
        return found


def loss(model: nn.Module, batch: Batch) -> Tensor:
    return F.cross_entropy(model(batch["x"], batch["edges"]), batch["labels"])


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_network_trains(name: str, xpu: torch.device) -> None:
    batch = {
        "x": torch.rand(NODES, 6),
        "edges": EDGES,
        "labels": torch.arange(NODES) % 3,
    }
    check(Network(name), batch, loss, xpu)


@pytest.mark.parametrize("reduce", ["sum", "mean", "min", "max", "mul", "any"])
def test_scatter(reduce: str, xpu: torch.device) -> None:
    source = torch.rand(70, 4, requires_grad=reduce != "any")
    options: dict[str, Any] = {"dim_size": NODES, "reduce": reduce}
    if reduce == "any":  # one of the values, not told which
        source = EDGES[1][:, None].float()
    agree(utils.scatter, source, EDGES[1], 0, device=xpu, **options)


def test_softmax_over_neighbours(xpu: torch.device) -> None:
    agree(
        utils.softmax,
        torch.rand(70, 2, requires_grad=True),
        EDGES[1],
        num_nodes=NODES,
        device=xpu,
        rtol=1e-4,
        atol=1e-5,
    )


def test_graphs_in_batches(xpu: torch.device) -> None:
    graphs = [
        Data(x=torch.rand(n, 6), edge_index=torch.randint(0, n, (2, 3 * n)), y=n % 2)
        for n in (4, 7, 5, 9)
    ]
    model = Network("GCN")
    expected, found = [], []
    for batch in DataLoader(graphs, batch_size=2):
        pooled = graph_nn.global_mean_pool(
            model(batch.x, batch.edge_index), batch.batch
        )
        expected.append(pooled.detach())
    model.to(xpu)
    for batch in DataLoader(graphs, batch_size=2):
        moved = batch.to(xpu)
        assert moved.x.device == moved.y.device == xpu
        pooled = graph_nn.global_mean_pool(
            model(moved.x, moved.edge_index), moved.batch
        )
        found.append(pooled.detach().cpu())
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_edges_as_a_sparse_matrix(xpu: torch.device) -> None:
    model = Network("GCN").eval()
    x = torch.rand(NODES, 6)
    edges = EDGES.unique(dim=1).flip(0)  # the rows are the targets
    adjacent = utils.to_torch_csr_tensor(edges, size=(NODES, NODES))
    expected = model(x, adjacent)
    found = model.to(xpu)(x.to(xpu), adjacent.to(xpu))
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["add_self_loops", "to_undirected", "coalesce", "degree", "k_hop"]
)
def test_utilities(name: str, xpu: torch.device) -> None:
    calls: dict[str, Any] = {
        "add_self_loops": lambda e: utils.add_self_loops(e)[0],
        "to_undirected": utils.to_undirected,
        "coalesce": utils.coalesce,
        "degree": lambda e: utils.degree(e[0], NODES),
        "k_hop": lambda e: utils.k_hop_subgraph(3, 2, e)[0],
    }
    agree(calls[name], EDGES, device=xpu, strides=False)


def test_the_device_of_its_own_choice(xpu: torch.device) -> None:
    assert geometric.device("auto").type == "xpu"
