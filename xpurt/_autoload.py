"""Why xpurt is not in charge of xpu, where it is not."""

_inactive_reason: str | None = None


def inactive_reason() -> str | None:
    """Why xpurt gave this PyTorch no xpu device; None if it did."""
    return _inactive_reason


def set_inactive(reason: str) -> None:
    global _inactive_reason
    _inactive_reason = reason
