"""A simulated machine, to compare policies on. Pure: uses no device.

`xpurt.mapping` has names of this face, too: programs import them from there.
"""

from xpurt_tools import workloads
from xpurt_tools.simulation import divided_ops, fleets, product_forms
from xpurt_tools.simulation.co_execution import CoExecution, co_execute
from xpurt_tools.simulation.collective_costs import (
    ALGORITHMS,
    Cluster,
    Link,
    all_reduce_us,
)
from xpurt_tools.simulation.data_parallel import (
    Layer,
    Step,
    buckets_of,
    data_parallel_step,
)
from xpurt_tools.simulation.independent_chains import (
    IndependentChains,
    run_chains,
)
from xpurt_tools.simulation.larger_models import (
    LargerModel,
    WeightOp,
    run_larger_model,
)
from xpurt_tools.simulation.machine import SimulatedDevice, on_devices
from xpurt_tools.simulation.simulate import Simulation, simulate

__all__ = [
    "ALGORITHMS",
    "Cluster",
    "CoExecution",
    "IndependentChains",
    "LargerModel",
    "Layer",
    "Link",
    "SimulatedDevice",
    "Simulation",
    "Step",
    "WeightOp",
    "all_reduce_us",
    "buckets_of",
    "co_execute",
    "data_parallel_step",
    "divided_ops",
    "fleets",
    "on_devices",
    "product_forms",
    "run_chains",
    "run_larger_model",
    "simulate",
    "workloads",
]
