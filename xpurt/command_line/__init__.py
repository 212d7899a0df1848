"""`python -m xpurt`: the parser of all commands, and commands without a room."""
