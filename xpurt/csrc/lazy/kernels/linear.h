// Linear layers of lazy programs, and their derivative.
#pragma once

namespace xpurt {

// Note [Linear layers of lazy programs]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// PyTorch's kernel of `linear` is a transpose and a product, each with a node of
// autograd and a view of functionalization. Tracing a layer with its derivative took
// 110 us (AMD EPYC, 2026-11-30), most of it for transposes. Here `linear` is one node
// of autograd, for which PyTorch has the derivative, and one of the graph, and so is
// the derivative. Both become products where the graph runs.
//
// A call stays PyTorch's where its derivative would be another one: numbers that are
// complex, or a bias of other dimensions. It does so within transforms and dispatch
// modes, too, which see what `linear` is made of.

// Registers them, once, after `linear_backward` has its kernel of the Lazy key.
void register_linear();

}  // namespace xpurt
