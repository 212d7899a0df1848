"""Statistics of a batch that ranks hold in parts, as SyncBatchNorm gathers them."""

import torch


def test_the_statistics_of_parts_are_those_of_the_whole(xpu: torch.device) -> None:
    images = torch.randn(7, 3, 2, generator=torch.Generator().manual_seed(0)) * 2 + 5
    parts = [images[:2].to(xpu), images[2:].to(xpu)]
    eps, momentum = 1e-5, 0.1
    found = [torch.batch_norm_stats(part, eps) for part in parts]
    counts = torch.tensor([2 * 2.0, 5 * 2.0], device=xpu)
    running = [torch.zeros(3, device=xpu), torch.ones(3, device=xpu)]
    mean, inverse = torch.batch_norm_gather_stats_with_counts(
        parts[0],
        torch.stack([mean for mean, _ in found]),
        torch.stack([inverse for _, inverse in found]),
        *running,
        momentum,
        eps,
        counts,
    )
    variance, expected = torch.var_mean(images.double(), (0, 2), correction=0)
    torch.testing.assert_close(mean.cpu().double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        inverse.cpu().double(), (variance + eps).rsqrt(), rtol=1e-6, atol=0
    )
    of_sample = images.double().var((0, 2))
    kept = [momentum * expected, 1 - momentum + momentum * of_sample]
    for each, wanted in zip(running, kept, strict=True):
        torch.testing.assert_close(each.cpu().double(), wanted, rtol=1e-6, atol=0)
