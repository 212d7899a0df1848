"""Metrics of torchmetrics, whose states are on xpu."""

from typing import Any

import pytest
import torch

torchmetrics = pytest.importorskip("torchmetrics")
classification = pytest.importorskip("torchmetrics.classification")
image = pytest.importorskip("torchmetrics.image")
regression = pytest.importorskip("torchmetrics.regression")
retrieval = pytest.importorskip("torchmetrics.retrieval")

SCORES = torch.rand(40, 4, generator=torch.Generator().manual_seed(0)).softmax(1)
LABELS = torch.randint(0, 4, (40,), generator=torch.Generator().manual_seed(1))
PICTURES = torch.rand(2, 2, 3, 24, 24, generator=torch.Generator().manual_seed(2))

METRICS: dict[str, Any] = {
    "accuracy": (lambda: classification.MulticlassAccuracy(4), SCORES, LABELS),
    "f1": (lambda: classification.MulticlassF1Score(4), SCORES, LABELS),
    "auroc": (lambda: classification.MulticlassAUROC(4), SCORES, LABELS),
    "auroc, binned": (
        lambda: classification.MulticlassAUROC(4, thresholds=10),
        SCORES,
        LABELS,
    ),
    "confusion": (
        lambda: classification.MulticlassConfusionMatrix(4),
        SCORES,
        LABELS,
    ),
    "calibration": (
        lambda: classification.MulticlassCalibrationError(4),
        SCORES,
        LABELS,
    ),
    "spearman": (lambda: regression.SpearmanCorrCoef(), SCORES[:, 0], SCORES[:, 1]),
    "r2": (lambda: regression.R2Score(), SCORES[:, 0], SCORES[:, 1]),
    "ssim": (lambda: image.StructuralSimilarityIndexMeasure(), *PICTURES),
    "psnr": (lambda: image.PeakSignalNoiseRatio(data_range=1.0), *PICTURES),
    "ndcg": (
        lambda: retrieval.RetrievalNormalizedDCG(),
        SCORES[:, 0],
        LABELS > 1,
    ),
}


@pytest.mark.parametrize("name", METRICS)
def test_values(name: str, xpu: torch.device) -> None:
    make, found, wanted = METRICS[name]
    more = {"indexes": torch.arange(40) % 5} if name == "ndcg" else {}
    metric, other = make(), make().to(xpu)
    for half in (slice(None, None, 2), slice(1, None, 2)):
        metric.update(
            found[half], wanted[half], **{k: x[half] for k, x in more.items()}
        )
        other.update(
            found[half].to(xpu),
            wanted[half].to(xpu),
            **{k: x[half].to(xpu) for k, x in more.items()},
        )
    value = other.compute()
    assert value.device == xpu
    torch.testing.assert_close(value.cpu(), metric.compute(), rtol=1e-4, atol=1e-5)


def test_a_collection(xpu: torch.device) -> None:
    both = torchmetrics.MetricCollection(
        [classification.MulticlassAccuracy(4), classification.MulticlassRecall(4)]
    )
    expected = both(SCORES, LABELS)
    found = both.clone().to(xpu)(SCORES.to(xpu), LABELS.to(xpu))
    assert {each.device for each in found.values()} == {xpu}
    torch.testing.assert_close({k: x.cpu() for k, x in found.items()}, expected)
