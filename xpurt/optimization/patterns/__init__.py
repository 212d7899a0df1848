"""What is fused in the graph of a module's own forward beyond the chains of a layer: the
parts of transformers that have an op of their own."""
