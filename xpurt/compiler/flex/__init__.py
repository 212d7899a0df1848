"""`flex_attention` of compiled programs. Each module is imported by its name."""
