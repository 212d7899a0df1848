"""The networks whose training steps are traced."""

from torch import Tensor, nn
from torch.nn import functional as F


class _Block(nn.Module):
    """Two convolutions with a skip connection around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs, track_running_stats=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs, track_running_stats=False)
        self.around = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.around = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                nn.BatchNorm2d(outputs, track_running_stats=False),
            )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(inner + self.around(x))


class ResNet18(nn.Module):
    """He, Zhang, Ren and Sun (2016); images of [batch, 3, 224, 224] to 1,000 classes."""

    def __init__(self) -> None:
        super().__init__()
        widths = (64, 64, 128, 256, 512)
        blocks = [
            _Block(
                widths[i] if b == 0 else widths[i + 1], widths[i + 1], 1 + (b == 0 < i)
            )
            for i in range(4)
            for b in range(2)
        ]
        self.layers = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False),
            nn.BatchNorm2d(64, track_running_stats=False),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            *blocks,
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(512, 1000),
        )

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.layers(images)
        return scores


class _Layer(nn.Module):
    """Attention and a perceptron, each after a norm and with a skip connection."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value, self.out = (
            nn.Linear(width, width) for _ in range(4)
        )
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(x)
        query, key, value = (
            each(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for each in (self.query, self.key, self.value)
        )
        weights = (query @ key.transpose(-2, -1) * key.shape[-1] ** -0.5).softmax(-1)
        x = x + self.out((weights @ value).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """A decoder without a mask: tokens of [batch, length] to scores of the next one."""

    def __init__(self, layers: int, width: int, heads: int, words: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.Sequential(*(_Layer(width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, words)

    def forward(self, tokens: Tensor) -> Tensor:
        scores: Tensor = self.scores(self.norm(self.layers(self.embed(tokens))))
        return scores
