"""Ops that several devices can compute together, described by what they compute."""

from dataclasses import dataclass, replace

FLOAT = 4.0  # bytes


@dataclass(frozen=True, slots=True)
class DividedOp:
    """An op whose result has rows that can be computed separately.

    flops: of the whole op.
    rows: of the result; shards are whole rows.
    read_bytes: of the operands that are divided by rows.
    whole_bytes: of the operands that every shard reads as a whole.
    result_bytes: of the result that is divided by rows.
    summed_bytes: of a result to which every shard adds a partial sum.
    fresh_whole: whether the operands that are read as a whole are written anew, on the
        first device, before each call. Otherwise, as weights, they stay where they were
        copied.
    """

    name: str
    flops: float
    rows: int
    read_bytes: float
    whole_bytes: float = 0.0
    result_bytes: float = 0.0
    summed_bytes: float = 0.0
    fresh_whole: bool = False

    def bytes_of(self, proportion: float) -> float:
        """Memory that a shard of this proportion reads and writes."""
        divided = self.read_bytes + self.result_bytes
        return proportion * divided + self.whole_bytes + self.summed_bytes


def product(m: int, n: int, k: int) -> DividedOp:
    """[m, k] @ [k, n], by rows."""
    return DividedOp(
        f"product {m} x {k} x {n}",
        2.0 * m * n * k,
        m,
        FLOAT * m * k,
        FLOAT * k * n,
        FLOAT * m * n,
    )


def product_gradient(m: int, n: int, samples: int) -> DividedOp:
    """The gradient of a weight [n, m], with a row per sample in both operands. Each
    device has samples of both, and a partial sum of the result."""
    return DividedOp(
        f"product {m} x {samples} x {n}, by samples",
        2.0 * m * n * samples,
        samples,
        FLOAT * samples * (m + n),
        summed_bytes=FLOAT * m * n,
    )


def batched_product(batch: int, side: int) -> DividedOp:
    return DividedOp(
        f"batched product {batch} x {side}",
        2.0 * batch * side**3,
        batch,
        2 * FLOAT * batch * side**2,
        result_bytes=FLOAT * batch * side**2,
    )


def softmax(rows: int, columns: int) -> DividedOp:
    count = rows * columns
    return DividedOp(
        f"softmax {rows} x {columns}",
        5.0 * count,
        rows,
        FLOAT * count,
        result_bytes=FLOAT * count,
    )


def reduction(rows: int, columns: int) -> DividedOp:
    count = rows * columns
    return DividedOp(
        f"sum {rows} x {columns}",
        1.0 * count,
        rows,
        FLOAT * count,
        result_bytes=FLOAT * rows,
    )


def pointwise(rows: int, columns: int = 1, operands: int = 2) -> DividedOp:
    count = rows * columns
    return DividedOp(
        f"pointwise {rows} x {columns}",
        1.0 * count,
        rows,
        FLOAT * count * operands,
        result_bytes=FLOAT * count,
    )


def convolution(images: int, channels: int, side: int, kernel: int = 3) -> DividedOp:
    """As many channels out as in, and images of the same size."""
    size = FLOAT * images * channels * side**2
    return DividedOp(
        f"convolution {images} x {channels} x {side} x {side}",
        2.0 * images * channels**2 * (side * kernel) ** 2,
        images,
        size,
        FLOAT * channels**2 * kernel**2,
        size,
    )


def convolution_gradients(
    images: int, channels: int, side: int, kernel: int = 3
) -> DividedOp:
    """The gradients of the images and of the weight."""
    forward = convolution(images, channels, side, kernel)
    return replace(
        forward,
        name=f"gradients of {forward.name}",
        flops=2 * forward.flops,
        read_bytes=2 * forward.read_bytes,
        summed_bytes=forward.whole_bytes,
    )


def attention(heads: int, length: int, width: int = 64) -> DividedOp:
    """heads: of all sequences of the batch together; each is a row."""
    return DividedOp(
        f"attention {heads} x {length} x {width}",
        4.0 * heads * length**2 * width,
        heads,
        3 * FLOAT * heads * length * width,
        result_bytes=FLOAT * heads * length * width,
    )
