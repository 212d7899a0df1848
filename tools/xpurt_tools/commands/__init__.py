"""What the commands do that `python -m xpurt` lists and this package has: a module each,
with the functions `add_arguments` and `run`."""
