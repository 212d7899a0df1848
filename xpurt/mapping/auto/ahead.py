"""Planning and simulation. `xpurt.mapping` imports this at its first use, since most
programs never use it, and the import takes time."""

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
