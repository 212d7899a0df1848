"""Training with bfloat16 parameters whose float32 values are kept."""
