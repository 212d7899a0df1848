"""Work of several processes, the ranks of torch.distributed, for the bench."""

from xpurt_tools.bench.ranks.group import RankGroup, group_of_two

__all__ = ["RankGroup", "group_of_two"]
