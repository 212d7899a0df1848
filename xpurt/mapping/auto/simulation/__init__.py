"""A simulated machine, to compare policies on. Pure: uses no device."""

from xpurt.mapping.auto.simulation import fleets
from xpurt.mapping.auto.simulation.machine import SimulatedDevice, on_devices
from xpurt.mapping.auto.simulation.simulate import Simulation, simulate

__all__ = ["SimulatedDevice", "Simulation", "fleets", "on_devices", "simulate"]
