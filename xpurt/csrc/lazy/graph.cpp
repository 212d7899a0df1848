#include "lazy/graph.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>
#include <chrono>

#include "host/mutex.h"
#include "lazy/transposed_products.h"
#include "stream/stream.h"

namespace xpurt {
namespace {

using c10::IValue;
using torch::lazy::Output;
using torch::lazy::Shape;

// What compiling takes, about: of a graph, and of an op.
constexpr double kGraphUs = 1.0e6;
constexpr double kOpUs = 2.0e4;

struct CompilerInUse {
  Mutex mutex{Rank::lazy_compiler};
  std::shared_ptr<const LazyCompiler> compiler = std::make_shared<LazyCompiler>();
};

CompilerInUse& in_use() {
  static auto* const leaked = new CompilerInUse;
  return *leaked;
}

std::shared_ptr<const LazyCompiler> compiler() {
  const std::lock_guard<Mutex> lock(in_use().mutex);
  return in_use().compiler;
}

// As the text of a graph shows it.
c10::TensorTypePtr type_of(const Shape& shape) {
  return c10::TensorType::createContiguous(
      shape.scalar_type(), c10::Device(c10::DeviceType::XPU), shape.sizes());
}

}  // namespace

void set_lazy_compiler(LazyCompiler compiler) {
  auto made = std::make_shared<const LazyCompiler>(std::move(compiler));
  const std::lock_guard<Mutex> lock(in_use().mutex);
  in_use().compiler.swap(made);
}

LazyGraph::LazyGraph(const std::shared_ptr<torch::jit::Graph>& graph,
                     std::vector<Shape> parameters, std::vector<Shape> results)
    : TSComputation(graph),
      parameters_(std::move(parameters)),
      results_(std::move(results)),
      steps_(*graph),
      counts_(*this, steps_.size()) {
  for (size_t at = 0; at < parameters_.size(); ++at)
    graph->inputs().at(at)->setType(type_of(parameters_[at]));
  for (const torch::jit::Value* each : graph->inputs()) {
    is_number_.push_back(std::ranges::all_of(each->uses(), [](const auto& use) {
      return use.user->kind() == c10::Symbol::fromQualString("aten::ScalarImplicit");
    }));
  }
}

double LazyGraph::due_us() const {
  return kGraphUs + kOpUs * static_cast<double>(steps_.size());
}

std::vector<at::Tensor> LazyGraph::run(std::vector<IValue> arguments,
                                       c10::DeviceIndex index) {
  counts_.begin(index);
  if (!has_program_) {
    const int run = runs_++;
    const auto compiler_in_use = compiler();
    if (!compiler_in_use->compile) return run_op_by_op(std::move(arguments));
    if (run == 0) find_program(compiler_in_use->find, arguments);
    if (!has_program_) {
      if (!compiler_in_use->at_once) {
        if (run == 1) return run_timed(std::move(arguments), index);
        if (run * run_us_ < due_us()) return run_op_by_op(std::move(arguments));
      }
      compile_program(compiler_in_use->compile, arguments);
      if (!has_program_) return run_op_by_op(std::move(arguments));
    }
  }
  std::vector<at::Tensor> results = program_(std::move(arguments));
  for (at::Tensor& each : results) each = each.contiguous();
  return results;
}

void LazyGraph::find_program(const LazyCompiler::Make& find,
                             const std::vector<IValue>& arguments) {
  if (!find || is_claimed_.exchange(true)) return;
  program_ = find(*this, arguments);
  has_program_ = static_cast<bool>(program_);
  is_claimed_ = has_program_.load();
}

void LazyGraph::compile_program(const LazyCompiler::Make& compile,
                                const std::vector<IValue>& arguments) {
  if (is_claimed_.exchange(true)) return;  // or it could not be compiled
  program_ = compile(*this, arguments);
  has_program_ = static_cast<bool>(program_);
}

std::vector<at::Tensor> LazyGraph::run_timed(std::vector<IValue> arguments,
                                             c10::DeviceIndex index) {
  using Clock = std::chrono::steady_clock;
  Stream& stream = current_stream(index);
  stream.wait();
  const Clock::time_point begin = Clock::now();
  std::vector<at::Tensor> results = run_op_by_op(std::move(arguments));
  stream.wait();
  run_us_ = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
  return results;
}

std::vector<at::Tensor> LazyGraph::run_compiled(
    const std::function<std::vector<at::Tensor>()>& code) {
  const CountedRun counted(counts_, GraphForm::compiled);
  return code();
}

std::vector<at::Tensor> LazyGraph::run_op_by_op(std::vector<IValue> arguments) {
  const CountedRun counted(counts_, GraphForm::op_by_op);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  std::vector<at::Tensor> results;
  for (const IValue& each : steps_.run(std::move(arguments))) {
    // A later graph of the same hash takes it for granted that its arguments are dense.
    results.push_back(each.toTensor().contiguous());
  }
  return results;
}

std::vector<LazyGraphState> lazy_graph_states() {
  std::vector<LazyGraphState> found;
  for_each_lazy_graph([&](const GraphRuns& each) {
    const LazyGraph& graph = each.graph();
    found.push_back(
        {each.name(), graph.to_string(), graph.runs(), graph.run_us(), graph.due_us()});
  });
  return found;
}

size_t Lowering::AddResult(const Output& output) {
  results_.push_back(output.shape());
  return TSLoweringContext::AddResult(output);
}

void Lowering::AddParameter(const Output& output, size_t index, const Shape& shape,
                            const std::string& name) {
  TORCH_CHECK(index == graph()->inputs().size(), "parameter ", name, " has the index ",
              index, ", but the graph has ", graph()->inputs().size(),
              " parameters. Add them in their order.");
  torch::jit::Value* input = graph()->addInput(name);
  input->setType(type_of(shape));
  AssignOutputOp(output, input);
  added_.push_back(shape);
}

bool Lowering::CheckResultShape(const torch::lazy::BackendDataPtr& parameter,
                                size_t result) {
  return parameter->shape() == results_.at(result);
}

torch::lazy::ComputationPtr Lowering::Build() {
  const torch::lazy::ComputationPtr built = TSLoweringContext::Build();
  const auto traced = static_cast<torch::lazy::TSComputation&>(*built).graph();
  torch::jit::LowerAllTuples(traced);
  reorder_transposed_products(*traced);
  torch::jit::EliminateDeadCode(traced);
  std::vector<Shape> parameters;
  for (const auto& each : parameters_) parameters.push_back(each->shape());
  parameters.insert(parameters.end(), added_.begin(), added_.end());
  return std::make_shared<LazyGraph>(traced, std::move(parameters), results_);
}

}  // namespace xpurt
