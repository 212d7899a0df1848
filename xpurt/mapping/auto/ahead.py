"""Planning and simulation. `xpurt.mapping` imports this at its first use, since most
programs never use it, and the import takes time."""

from xpurt.mapping.auto import workloads
from xpurt.mapping.auto.planning import Schedule, TaskGraph, plan
from xpurt.mapping.auto.simulation import (
    CoExecution,
    IndependentChains,
    SimulatedDevice,
    Simulation,
    co_execute,
    divided_ops,
    fleets,
    on_devices,
    product_forms,
    run_chains,
    simulate,
)

__all__ = [
    "CoExecution",
    "IndependentChains",
    "Schedule",
    "SimulatedDevice",
    "Simulation",
    "TaskGraph",
    "co_execute",
    "divided_ops",
    "fleets",
    "on_devices",
    "plan",
    "product_forms",
    "run_chains",
    "simulate",
    "workloads",
]
