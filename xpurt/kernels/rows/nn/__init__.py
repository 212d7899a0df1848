"""Rows of the ops behind torch.nn and torch.optim: layers, losses, optimizers."""
