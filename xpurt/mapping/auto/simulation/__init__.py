"""A simulated machine, to compare policies on. Pure: uses no device."""

from xpurt.mapping.auto.simulation import divided_ops, fleets, product_forms
from xpurt.mapping.auto.simulation.co_execution import CoExecution, co_execute
from xpurt.mapping.auto.simulation.collective_costs import (
    ALGORITHMS,
    Cluster,
    Link,
    all_reduce_us,
)
from xpurt.mapping.auto.simulation.data_parallel import (
    Layer,
    Step,
    buckets_of,
    data_parallel_step,
)
from xpurt.mapping.auto.simulation.independent_chains import (
    IndependentChains,
    run_chains,
)
from xpurt.mapping.auto.simulation.machine import SimulatedDevice, on_devices
from xpurt.mapping.auto.simulation.simulate import Simulation, simulate

__all__ = [
    "ALGORITHMS",
    "Cluster",
    "CoExecution",
    "IndependentChains",
    "Layer",
    "Link",
    "SimulatedDevice",
    "Simulation",
    "Step",
    "all_reduce_us",
    "buckets_of",
    "co_execute",
    "data_parallel_step",
    "divided_ops",
    "fleets",
    "on_devices",
    "product_forms",
    "run_chains",
    "simulate",
]
