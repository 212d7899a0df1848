"""Planning and simulation: what `xpurt.mapping` gives out when it is asked for, as most
programs never do and importing it takes time."""

from xpurt.mapping.auto import workloads
from xpurt.mapping.auto.planning import Schedule, TaskGraph, plan
from xpurt.mapping.auto.simulation import (
    SimulatedDevice,
    Simulation,
    fleets,
    on_devices,
    simulate,
)

__all__ = [
    "Schedule",
    "SimulatedDevice",
    "Simulation",
    "TaskGraph",
    "fleets",
    "on_devices",
    "plan",
    "simulate",
    "workloads",
]
