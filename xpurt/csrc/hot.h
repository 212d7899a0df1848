// Ops without boxing, for those that training calls most. See Note [Hot ops].
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/impl/boxing.h>
#include <ATen/core/IListRef.h>
#include <torch/library.h>

#include <optional>
#include <tuple>
#include <utility>

#include "alias.h"
#include "cpu_allocator.h"
#include "device_scope.h"
#include "dispatch.h"
#include "op_report.h"

namespace xpurt {

// Note [Hot ops]
// ~~~~~~~~~~~~~~
// Every op on xpu can be run from a stack (see run_op). A small op spends more time on
// that stack than in its kernel, so the most used ones are registered with their own
// signature. Such a function serves one case, the common one: operands of one ordinal
// whose memory the host reads, and no row that would take the call. All else, errors
// too, it puts on a stack and leaves to run_op, which decides alone what happens.
//
// Only for ops that PyTorch has a CPU kernel for, and that neither draw random numbers
// nor take a device, nor change the sizes of a tensor in place.

// What a hot op learns from its operands.
class HotOperands {
 public:
  void see(const at::Tensor& tensor, bool written) {
    const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
    if (&impl == c10::UndefinedTensorImpl::singleton()) return;
    const c10::Device device = impl.device();
    if (C10_LIKELY(device.is_xpu())) {
      odd_ |= index_ >= 0 && index_ != device.index();
      odd_ |= !is_plain(tensor);
      index_ = device.index();
    } else {
      odd_ |= !device.is_cpu() || impl.dim() > 0 || written;
    }
    largest_ = std::max(largest_, impl.numel());
  }

  c10::DeviceIndex index() const { return index_; }

  // Whether the op can be run on aliases right away.
  bool run_on_aliases(const OpRecord& record) const {
    return C10_LIKELY(index_ >= 0 && !odd_) && goes_native(record, index_, largest_);
  }

 private:
  c10::DeviceIndex index_ = -1;
  bool odd_ = false;  // some operand is not what hot ops are for
  int64_t largest_ = 0;
};

// One argument of a hot op: the rest are passed on as they are.
template <typename Arg>
struct HotArgument {
  static void see(HotOperands&, const OpRecord&, size_t, const Arg&) {}
  HotArgument(HostCall&, const OpRecord&, size_t, const Arg& arg) : arg_(arg) {}
  const std::remove_reference_t<Arg>& host() { return arg_; }

 private:
  const std::remove_reference_t<Arg>& arg_;
};

template <>
struct HotArgument<const at::Tensor&> {
  static void see(HotOperands& operands, const OpRecord& record, size_t i,
                  const at::Tensor& tensor) {
    operands.see(tensor, record.written[i]);
  }
  HotArgument(HostCall& call, const OpRecord& record, size_t i, const at::Tensor& arg)
      : host_(call.to_host(arg, record.written[i])) {}
  const at::Tensor& host() { return host_; }

 private:
  at::Tensor host_;
};

template <>
struct HotArgument<at::Tensor&> {
  static void see(HotOperands& operands, const OpRecord&, size_t,
                  const at::Tensor& tensor) {
    operands.see(tensor, true);
  }
  HotArgument(HostCall& call, const OpRecord&, size_t, at::Tensor& arg)
      : host_(call.to_host(arg, true)) {}
  at::Tensor& host() { return host_; }

 private:
  at::Tensor host_;
};

template <>
struct HotArgument<const std::optional<at::Tensor>&> {
  using Optional = std::optional<at::Tensor>;
  static void see(HotOperands& operands, const OpRecord& record, size_t i,
                  const Optional& arg) {
    if (arg) operands.see(*arg, record.written[i]);
  }
  HotArgument(HostCall& call, const OpRecord& record, size_t i, const Optional& arg) {
    if (arg) host_ = call.to_host(*arg, record.written[i]);
  }
  const Optional& host() { return host_; }

 private:
  Optional host_;
};

template <>
struct HotArgument<const at::ITensorListRef&> {
  static void see(HotOperands& operands, const OpRecord&, size_t,
                  const at::ITensorListRef& list) {
    for (const at::Tensor& tensor : list) operands.see(tensor, false);
  }
  HotArgument(HostCall& call, const OpRecord&, size_t, const at::ITensorListRef& list) {
    for (const at::Tensor& tensor : list) {
      tensors_.push_back(call.to_host(tensor, false));
    }
  }
  at::ITensorListRef host() { return at::TensorList(tensors_); }

 private:
  c10::SmallVector<at::Tensor, 4> tensors_;
};

template <>
struct HotArgument<at::TensorList> {
  static void see(HotOperands& operands, const OpRecord&, size_t, at::TensorList list) {
    for (const at::Tensor& tensor : list) operands.see(tensor, false);
  }
  HotArgument(HostCall& call, const OpRecord&, size_t, at::TensorList list) {
    for (const at::Tensor& tensor : list) {
      tensors_.push_back(call.to_host(tensor, false));
    }
  }
  at::TensorList host() { return tensors_; }

 private:
  c10::SmallVector<at::Tensor, 4> tensors_;
};

// The arguments that an op returns: those that it takes as `Tensor&`, in order.
template <typename Arg>
auto returned(std::remove_reference_t<Arg>& arg) {
  if constexpr (std::is_same_v<Arg, at::Tensor&>) {
    return std::tuple<at::Tensor&>(arg);
  } else {
    (void)arg;
    return std::tuple<>();
  }
}

template <typename Result>
struct HotResult {
  static Result to_xpu(HostCall& call, Result result) {
    return call.to_xpu(std::move(result));
  }
};
template <typename... Results>
struct HotResult<std::tuple<Results...>> {
  static std::tuple<Results...> to_xpu(HostCall& call, std::tuple<Results...> result) {
    std::apply([&](auto&... each) { ((each = call.to_xpu(std::move(each))), ...); },
               result);
    return result;
  }
};

template <typename Op, typename Schema = typename Op::schema>
struct HotOp;

template <typename Op, typename Result, typename... Args>
struct HotOp<Op, Result(Args...)> {
  static Result call(c10::DispatchKeySet keys, Args... args) {
    OpRecord& record = found();
    HotOperands operands;
    size_t position = 0;
    (HotArgument<Args>::see(operands, record, position++, args), ...);
    if (C10_UNLIKELY(!operands.run_on_aliases(record))) {
      return boxed(record, keys, args...);
    }
    return on_aliases(record, operands.index(), keys,
                      std::index_sequence_for<Args...>(), args...);
  }

 private:
  static constexpr size_t kReturned =
      (std::size_t{0} + ... + (std::is_same_v<Args, at::Tensor&> ? 1 : 0));

  static OpRecord& found() {
    static OpRecord& record = op_record(
        c10::Dispatcher::singleton().findSchemaOrThrow(Op::name, Op::overload_name));
    return record;
  }

  // What `Tensor&` results are: the arguments themselves.
  static Result arguments(Args... args) {
    auto all = std::tuple_cat(returned<Args>(args)...);
    if constexpr (kReturned == 1) {
      return std::get<0>(all);
    } else {
      return all;
    }
  }

  template <size_t... I>
  static Result on_aliases(OpRecord& record, c10::DeviceIndex index,
                           c10::DispatchKeySet keys, std::index_sequence<I...>,
                           Args... args) {
    const uint64_t begin = ticks_now();
    const DeviceScope scope(index);
    HostCall call(index);
    // Braces: from left to right.
    std::tuple<HotArgument<Args>...> host{HotArgument<Args>(call, record, I, args)...};
    call.wait();
    const c10::DispatchKeySet cpu_keys = host_keys(keys);
    if constexpr (kReturned > 0) {
      {
        ResultsOnDevice results(true);
        Op::redispatch(cpu_keys, std::get<I>(host).host()...);
      }
      call.finish_arguments();
      count(record, index, begin);
      return arguments(args...);
    } else {
      Result result = [&] {
        ResultsOnDevice results(true);
        return Op::redispatch(cpu_keys, std::get<I>(host).host()...);
      }();
      call.finish_arguments();
      result = HotResult<Result>::to_xpu(call, std::move(result));
      count(record, index, begin);
      return result;
    }
  }

  static void count(OpRecord& record, c10::DeviceIndex index, uint64_t begin) {
    count_op(record, Tier::native, ordinal(index).home_device().id, ticks_now() - begin,
             0);
  }

  C10_NOINLINE static Result boxed(OpRecord& record, c10::DispatchKeySet keys,
                                   Args... args) {
    torch::jit::Stack stack = c10::impl::boxArgs<Args...>(args...);
    run_op(record, keys, &stack);
    if constexpr (kReturned > 0) {
      return arguments(args...);
    } else {
      return c10::impl::PopResult<Result>::call(stack);
    }
  }
};

// Registers the function for Op, one of at::_ops.
template <typename Op>
void hot(torch::Library& library) {
  const c10::OperatorName name(Op::name, Op::overload_name);
  // Others are computed by way of other ops, some of which have their own kernel.
  TORCH_INTERNAL_ASSERT(c10::Dispatcher::singleton()
                            .findSchemaOrThrow(Op::name, Op::overload_name)
                            .hasKernelForDispatchKey(c10::DispatchKey::CPU),
                        name, " has no CPU kernel");
  library.impl(toString(name).c_str(), TORCH_FN(HotOp<Op>::call));
}

}  // namespace xpurt
