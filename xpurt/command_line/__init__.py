"""`python -m xpurt`: the parser of all commands, and the commands that are no room."""
