"""`xpurt.autocast`: autocast with a layout, and in int8."""
