// Unboxed functions of the ops that training calls most. See Note [Unboxed ops].
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/IListRef.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <utility>

#include "dispatch/unboxed/direct_form.h"
#include "dispatch/unboxed/unboxed_run.h"
#include "memory/cpu_allocator.h"
#include "native/host_call.h"
#include "native/host_views.h"
#include "native/structured.h"

namespace xpurt {

// Note [Unboxed ops]
// ~~~~~~~~~~~~~~~~~~
// Every op on xpu can be run from a stack (see run_op). A small op spends more time on
// that stack than in its kernel. So the most used ops are registered with their own
// signature. Such a function handles the common case: the operands are on one ordinal,
// the host reads its memory, and the native tier is chosen. All other calls, errors
// included, are boxed and passed to run_op() or run_inspected(), with the properties of
// the operands that were found, so that nothing is checked twice.
//
// The common case has four forms. Pointwise ops on operands of one shape run on the
// xpu tensors: see Note [Structured ops on xpu tensors]. So do ops that have a direct
// form: see Note [Direct forms]. Ops that may resize a result use tensors made for the
// call: see Note [Host tensors]. All other ops use tensors that the thread keeps: see
// Note [Host views].
//
// An unboxed op has to have a CPU kernel in PyTorch. It may not draw random numbers,
// take a device, or change the sizes of a tensor in place.

// One argument of an unboxed op. If it holds tensors, Host (HostViews or HostCall)
// makes their host forms. Other arguments are passed on unchanged.
template <typename Arg, typename Host>
struct UnboxedArgument {
  UnboxedArgument(Host&, bool, const Arg& arg) : arg_(arg) {}
  const std::remove_reference_t<Arg>& host() { return arg_; }

 private:
  const std::remove_reference_t<Arg>& arg_;
};

template <typename Host>
using HostForm =
    decltype(std::declval<Host&>().to_other(std::declval<const at::Tensor&>(), true));

template <typename Host>
struct UnboxedArgument<const at::Tensor&, Host> {
  UnboxedArgument(Host& call, bool written, const at::Tensor& arg)
      : host_(call.to_other(arg, written)) {}
  const at::Tensor& host() { return host_; }

 private:
  HostForm<Host> host_;
};

template <typename Host>
struct UnboxedArgument<at::Tensor&, Host> {
  UnboxedArgument(Host& call, bool, at::Tensor& arg)
      : host_(call.to_other(arg, true)) {}
  at::Tensor& host() { return host_; }

 private:
  HostForm<Host> host_;
};

template <typename Host>
struct UnboxedArgument<const std::optional<at::Tensor>&, Host> {
  using Optional = std::optional<at::Tensor>;
  UnboxedArgument(Host& call, bool written, const Optional& arg) {
    if (arg) host_ = call.to_other(*arg, written);
  }
  const Optional& host() { return host_; }

 private:
  Optional host_;
};

template <typename Host>
struct UnboxedList {
  template <typename List>
  UnboxedList(Host& call, bool written, const List& list) {
    for (const at::Tensor& tensor : list) {
      tensors_.push_back(call.to_other(tensor, written));
    }
  }
  at::TensorList host() { return tensors_; }

 private:
  c10::SmallVector<at::Tensor, 4> tensors_;
};
template <typename Host>
struct UnboxedArgument<const at::ITensorListRef&, Host> : UnboxedList<Host> {
  using UnboxedList<Host>::UnboxedList;
  at::ITensorListRef host() { return UnboxedList<Host>::host(); }
};
template <typename Host>
struct UnboxedArgument<at::TensorList, Host> : UnboxedList<Host> {
  using UnboxedList<Host>::UnboxedList;
};

template <typename Host>
struct UnboxedArgument<const c10::List<std::optional<at::Tensor>>&, Host> {
  using List = c10::List<std::optional<at::Tensor>>;
  UnboxedArgument(Host& call, bool, const List& list) {
    tensors_.reserve(list.size());
    for (const std::optional<at::Tensor> tensor : list) {
      tensors_.push_back(tensor
                             ? std::optional(at::Tensor(call.to_other(*tensor, false)))
                             : std::nullopt);
    }
  }
  const List& host() { return tensors_; }

 private:
  List tensors_;
};

// Records the tensors of an argument in UnboxedOperands.
template <typename Arg>
void inspect(UnboxedOperands&, bool, const Arg&) {}
inline void inspect(UnboxedOperands& operands, bool written, const at::Tensor& tensor) {
  operands.record(tensor, written);
}
inline void inspect(UnboxedOperands& operands, bool written,
                    const std::optional<at::Tensor>& tensor) {
  if (tensor) operands.record(*tensor, written);
}
inline void inspect(UnboxedOperands& operands, bool written,
                    const at::ITensorListRef& list) {
  for (const at::Tensor& tensor : list) operands.record(tensor, written);
}
inline void inspect(UnboxedOperands& operands, bool written,
                    const at::TensorList& list) {
  for (const at::Tensor& tensor : list) operands.record(tensor, written);
}
inline void inspect(UnboxedOperands& operands, bool,
                    const c10::List<std::optional<at::Tensor>>& list) {
  for (const std::optional<at::Tensor> tensor : list) {
    if (tensor) operands.record(*tensor, false);
  }
}

// Records the dimensions that an op runs along.
template <typename Arg>
void inspect_dims(UnboxedOperands&, const Arg&) {}
inline void inspect_dims(UnboxedOperands& operands, const int64_t& dim) {
  operands.record_dims(dim);
}
inline void inspect_dims(UnboxedOperands& operands, const at::IntArrayRef& dims) {
  operands.record_dims(dims);
}
inline void inspect_dims(UnboxedOperands& operands, const std::optional<int64_t>& dim) {
  if (dim) operands.record_dims(*dim);
}
inline void inspect_dims(UnboxedOperands& operands,
                         const at::OptionalIntArrayRef& dims) {
  if (dims) operands.record_dims(*dims);
}
inline void inspect_dims(UnboxedOperands& operands, const bool& training) {
  if (training) operands.record_channels();
}
// The shape of a line: no other argument that is recorded here has symbolic sizes.
inline void inspect_dims(UnboxedOperands& operands, const c10::SymIntArrayRef& shape) {
  operands.record_line(shape.size());
}

// The arguments that an op returns: its `Tensor&` arguments, in order.
template <typename Arg>
auto returned(std::remove_reference_t<Arg>& arg) {
  if constexpr (std::is_same_v<Arg, at::Tensor&>) {
    return std::tuple<at::Tensor&>(arg);
  } else {
    (void)arg;
    return std::tuple<>();
  }
}

template <typename Host, typename Result>
Result to_own(Host& call, Result result) {
  if constexpr (std::is_same_v<Result, at::Tensor>) {
    return call.to_own(std::move(result));
  } else {
    return result;
  }
}
template <typename Host, typename... Results>
std::tuple<Results...> to_own(Host& call, std::tuple<Results...> result) {
  std::apply([&](auto&... each) { ((each = to_own(call, std::move(each))), ...); },
             result);
  return result;
}

template <typename Op, typename Native, typename Kernel,
          typename Schema = typename Op::schema>
struct UnboxedOp;

template <typename Op, typename Native, typename Kernel, typename Result,
          typename... Args>
struct UnboxedOp<Op, Native, Kernel, Result(Args...)> {
  static Result call(c10::DispatchKeySet keys, Args... args) {
    const Found& op = found();
    OpRecord& record = op.record;
    UnboxedOperands operands;
    size_t position = 0;
    (inspect(operands, op.writes(position++), args), ...);
    if (record.dims >= 0) {
      int at = 0;
      ((at++ == record.dims ? inspect_dims(operands, args) : void()), ...);
    }
    if (C10_UNLIKELY(!operands.run_on_host(record))) {
      return boxed(record, operands, keys, args...);
    }
    const UnboxedRun run(record, operands.index(), operands.ordinal());
    if constexpr (is_direct_form<Native>) {
      if (uses_direct_forms.load(std::memory_order_relaxed) && Native::fits(args...)) {
        const DirectReads ready(run.stream(), args...);
        if (auto made = Native::run(args...)) {
          run.done();
          return *std::move(made);
        }
      }
    } else if constexpr (!std::is_void_v<Native>) {
      StructuredOperands alike;
      position = 0;
      (alike.record(args, op.writes(position++)), ...);
      if (alike.fit()) {
        return structured(run, alike, std::make_index_sequence<kComputed>(), args...);
      }
    }
    return on_host(op, run, operands.index(), keys, std::index_sequence_for<Args...>(),
                   args...);
  }

 private:
  // The op's record. To read a bit of a std::vector takes longer.
  struct Found {
    OpRecord& record;
    uint64_t written = 0;  // a bit for each argument

    explicit Found(OpRecord& of) : record(of) {
      for (size_t i = 0; i < sizeof...(Args); ++i) {
        written |= uint64_t{of.written[i]} << i;
      }
    }
    bool writes(size_t argument) const { return written >> argument & 1; }
  };
  static_assert(sizeof...(Args) <= 64);

  static constexpr size_t kReturned =
      std::is_void_v<Result>
          ? 0
          : (std::size_t{0} + ... + (std::is_same_v<Args, at::Tensor&> ? 1 : 0));
  // Whether the results are written to out= arguments, which may be resized.
  static constexpr bool kOut =
      kReturned > 0 && !std::string_view(Op::name).ends_with('_');
  static constexpr size_t kComputed = sizeof...(Args) - (kOut ? kReturned : 0);
  using Host = std::conditional_t<kOut, HostCall, HostViews>;

  static const Found& found() {
    static const Found op(op_record(
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name)));
    return op;
  }

  // The `Tensor&` results: the arguments themselves.
  static Result arguments(Args... args) {
    auto all = std::tuple_cat(returned<Args>(args)...);
    if constexpr (kReturned == 1) {
      return std::get<0>(all);
    } else {
      return all;
    }
  }

  template <size_t... I>
  static Result on_host(const Found& op, const UnboxedRun& run, c10::DeviceIndex index,
                        c10::DispatchKeySet keys, std::index_sequence<I...>,
                        Args... args) {
    Host call(index);
    // Braces guarantee evaluation from left to right.
    std::tuple<UnboxedArgument<Args, Host>...> host{
        UnboxedArgument<Args, Host>(call, op.writes(I), args)...};
    call.wait();
    const c10::DispatchKeySet cpu_keys = host_keys(keys);
    if constexpr (kReturned > 0 || std::is_void_v<Result>) {
      {
        ResultsOnDevice results(true);
        Kernel::redispatch(cpu_keys, std::get<I>(host).host()...);
      }
      call.finish_arguments();
      run.done();
      if constexpr (kReturned > 0) return arguments(args...);
    } else {
      Result result = [&] {
        ResultsOnDevice results(true);
        return Kernel::redispatch(cpu_keys, std::get<I>(host).host()...);
      }();
      call.finish_arguments();
      result = to_own(call, std::move(result));
      run.done();
      return result;
    }
  }

  template <size_t... I>
  static Result structured(const UnboxedRun& run, StructuredOperands& operands,
                           std::index_sequence<I...>, Args... args) {
    const auto all = std::forward_as_tuple(args...);
    const at::Tensor* result = nullptr;
    if constexpr (kReturned > 0)
      result = &std::get<0>(std::tuple_cat(returned<Args>(args)...));
    operands.wait(run.stream());
    Structured<Native> op(result, &run.stream());
    at::Tensor made = op.run(computed(operands, std::get<I>(all))...);
    run.done();
    if constexpr (kReturned > 0) {
      return arguments(args...);
    } else {
      return made;
    }
  }

  template <typename Arg>
  static const Arg& computed(const StructuredOperands& operands, const Arg& arg) {
    if constexpr (std::is_same_v<Arg, at::Tensor>) {
      return operands.converted(arg);
    } else {
      return arg;
    }
  }

  C10_NOINLINE static Result boxed(OpRecord& record, const UnboxedOperands& operands,
                                   c10::DispatchKeySet keys, Args... args) {
    torch::jit::Stack stack = c10::impl::boxArgs<Args...>(args...);
    operands.run_boxed(record, keys, &stack);
    if constexpr (kReturned > 0) {
      return arguments(args...);
    } else if constexpr (!std::is_void_v<Result>) {
      return c10::impl::PopResult<Result>::call(stack);
    }
  }
};

// Registers the unboxed function of Op, one of at::_ops. Native: its direct form, or
// PyTorch's structured CPU kernel, if it is to run on the xpu tensors: see Note [Direct
// forms] and Note [Structured ops on xpu tensors]. Kernel:
// its redispatch() computes the op on CPU tensors.
template <typename Op, typename Native = void, typename Kernel = Op>
void unboxed(torch::Library& library) {
  const c10::OperatorName name(Op::name, Op::overload_name);
  // An op without a CPU kernel is composed of other ops, which may be unboxed
  // themselves.
  constexpr bool ours = !std::is_same_v<Op, Kernel>;
  TORCH_INTERNAL_ASSERT(ours || c10::Dispatcher::singleton()
                                    .findSchemaOrThrow(Op::name, Op::overload_name)
                                    .hasKernelForDispatchKey(c10::DispatchKey::CPU),
                        name, " has no CPU kernel");
  library.impl(toString(name).c_str(), TORCH_FN((UnboxedOp<Op, Native, Kernel>::call)));
  unboxed_ops().push_back(toString(name));
  if constexpr (is_direct_form<Native>) direct_ops().push_back(toString(name));
}

}  // namespace xpurt
