"""The table of activations, which C++ has with oneDNN's names."""

from xpurt import _C
from xpurt.functional.activations import FUNCTIONS


def test_python_and_cpp_know_the_same_activations() -> None:
    assert list(FUNCTIONS) == _C.testing.activation_names()
