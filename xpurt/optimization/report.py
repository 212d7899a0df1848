"""What was done to a model, and what it took before and after."""

from dataclasses import dataclass, field

from xpurt.text.notebook import ShownInNotebooks


@dataclass(frozen=True, slots=True)
class ModuleTime:
    """Wall time of one call with the sample, in milliseconds."""

    name: str
    kind: str
    before_ms: float
    after_ms: float


@dataclass(slots=True)
class Report(ShownInNotebooks):
    """The attribute `report` of an optimized model.

    done: the qualified name of each part that changed, and what was done.
    left: of each part that stays as it is, with the reason.
    times: of the model, if there was a sample input.
    """

    done: list[tuple[str, str]] = field(default_factory=list)
    left: list[tuple[str, str]] = field(default_factory=list)
    times: list[ModuleTime] = field(default_factory=list)

    @staticmethod
    def add(rows: list[tuple[str, str]], name: str, what: str) -> None:
        """Adds a row to `done` or `left`, once."""
        if (name, what) not in rows:
            rows.append((name, what))

    def __str__(self) -> str:
        lines = [f"{len(self.done)} parts optimized, {len(self.left)} left as they are"]
        for title, rows in (("optimized", self.done), ("left", self.left)):
            if rows:
                lines += ["", title]
                lines += [f"  {name or 'the model'}: {what}" for name, what in rows]
        if self.times:
            lines += ["", f"{'before':>10}{'after':>10}  ms per call"]
            lines += [
                f"{each.before_ms:10.3f}{each.after_ms:10.3f}  "
                f"{each.name or 'the model'} ({each.kind})"
                for each in self.times
            ]
        return "\n".join(lines)
