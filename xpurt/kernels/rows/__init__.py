"""The rows: one declaration per op. Ops of neural networks are in `nn`.

`table` puts all of them in order: the position of a row is its number in kernel keys.
`cost_classes` has the ops that cost alike. Imports the kinds alone.
"""
