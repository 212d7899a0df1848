"""Routing of tokens to experts, as Mixtral of transformers does it."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

EXPERTS, CHOSEN, WIDTH = 4, 2, 8


class Mixture(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH))

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = F.softmax(self.gate(tokens), dim=-1)
        weights, experts = torch.topk(weights, CHOSEN, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)

        # With a mask of each expert's tokens.
        mask = F.one_hot(experts, EXPERTS).permute(2, 1, 0)
        result = torch.zeros_like(tokens)
        for expert in torch.greater(mask.sum((-1, -2)), 0).nonzero().flatten().tolist():
            which, token = torch.where(mask[expert])
            part = F.silu(tokens[token] @ self.up[expert]) * weights[token, which, None]
            result.index_add_(0, token, part.to(tokens.dtype))

        # With groups of sorted tokens, whose sizes are a histogram of integers.
        flat = experts.reshape(-1)
        order = flat.argsort(stable=True)
        counts = torch.histc(on_gpus(flat), bins=EXPERTS, min=0, max=EXPERTS - 1)
        ends = counts.cumsum(0).tolist()
        token = order // CHOSEN
        parts = [
            F.silu(tokens[token[begin:end]] @ self.up[expert])
            for expert, (begin, end) in enumerate(
                zip([0, *map(int, ends)], map(int, ends), strict=False)
            )
        ]
        grouped = torch.zeros_like(tokens).index_add_(
            0, token, torch.cat(parts) * weights.reshape(-1)[order, None]
        )
        return result, grouped


def on_gpus(experts: torch.Tensor) -> torch.Tensor:
    """transformers counts numbers on the CPU in float32 and integers elsewhere."""
    return experts.int() if experts.is_xpu else experts.float()


def test_tokens_go_to_their_experts(xpu: torch.device) -> None:
    torch.manual_seed(0)
    mixture = Mixture()
    tokens = torch.randn(12, WIDTH)

    def trained(device: torch.device) -> list[torch.Tensor]:
        """The results of both forms, and the gradients of each."""
        there = copy.deepcopy(mixture).to(device)
        results = there(tokens.to(device))
        slopes = [
            torch.autograd.grad(
                result.square().mean(), list(there.parameters()), retain_graph=True
            )
            for result in results
        ]
        return [each.cpu() for each in (*results, *slopes[0], *slopes[1])]

    expected, found = trained(torch.device("cpu")), trained(xpu)
    torch.testing.assert_close(expected[0], expected[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
