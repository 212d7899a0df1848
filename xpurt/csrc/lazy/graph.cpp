#include "lazy/graph.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/ScopeExit.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/lower_tuples.h>

#include <algorithm>

#include "host/clock.h"
#include "lazy/metrics.h"
#include "lazy/real_devices.h"
#include "lazy/transposed_products.h"
#include "schedule/learning_mode.h"

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
      shape.scalar_type(), c10::Device(lazy_device_type()), shape.sizes());
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
                                       c10::Device device) {
  counts_.begin(device);
  const LazyOpsRun ops(device);
  const FormTurn turn = next_turn(arguments);
  if (turn.timed) return run_timed(turn.second, std::move(arguments), device);
  return run_in_form(turn.second, std::move(arguments));
}

FormTurn LazyGraph::next_turn(const std::vector<IValue>& arguments) {
  const auto in_use = compiler();
  const bool learns = learning_mode() == LearningMode::learns;
  if (!has_program_) {
    ++runs_;
    if (!in_use->compile || !(learns || in_use->at_once)) return {};
    if (!is_searched_.exchange(true)) find_program(in_use->find, arguments);
    if (in_use->at_once && !has_program_) {
      compile_program(in_use->compile, arguments);
      if (!has_program_) return {};
      const std::lock_guard<Mutex> lock(forms_mutex_);
      forms_.reset();  // from before graphs were compiled at once: the price is paid
    }
  }
  if (has_program_ && program_.takes && !program_.takes(arguments)) return {};
  if (!learns) return {in_use->at_once, false};
  const FormTurn turn = next_of_both();
  if (turn.second && !has_program_) {
    compile_program(in_use->compile, arguments);
    if (!has_program_) return {};
  }
  return turn;
}

FormTurn LazyGraph::next_of_both() {
  const std::lock_guard<Mutex> lock(forms_mutex_);
  if (!forms_) forms_.emplace(has_program_ ? 0 : due_us(), 0, false);
  return forms_->next();
}

void LazyGraph::find_program(const LazyCompiler::Make& find,
                             const std::vector<IValue>& arguments) {
  if (!find || is_claimed_.exchange(true)) return;
  program_ = find(*this, arguments);
  has_program_ = static_cast<bool>(program_.run);
  is_claimed_ = has_program_.load();
  if (has_program_) count_found_code();
}

void LazyGraph::compile_program(const LazyCompiler::Make& compile,
                                const std::vector<IValue>& arguments) {
  if (is_claimed_.exchange(true)) return;  // or it could not be compiled
  const auto begin = std::chrono::steady_clock::now();
  const auto ended = c10::make_scope_exit([this, begin] {
    count_compilation(std::chrono::steady_clock::now() - begin, !has_program_);
    if (!has_program_) refuse_program();
  });
  program_ = compile(*this, arguments);
  has_program_ = static_cast<bool>(program_.run);
}

void LazyGraph::refuse_program() {
  const std::lock_guard<Mutex> lock(forms_mutex_);
  if (!forms_) forms_.emplace(due_us(), 0, false);
  forms_->refuse();
}

std::vector<at::Tensor> LazyGraph::run_in_form(bool compiled,
                                               std::vector<IValue> arguments) {
  return compiled ? run_compiled(std::move(arguments))
                  : run_op_by_op(std::move(arguments));
}

std::vector<at::Tensor> LazyGraph::run_timed(bool compiled,
                                             std::vector<IValue> arguments,
                                             c10::Device device) {
  synchronize_current_stream(device);
  const double begin_us = now_us();
  std::vector<at::Tensor> results = run_in_form(compiled, std::move(arguments));
  synchronize_current_stream(device);
  const double us = now_us() - begin_us;
  const std::lock_guard<Mutex> lock(forms_mutex_);
  if (!forms_) return results;
  forms_->record(compiled, us);
  run_us_ = forms_->lost_us();
  return results;
}

std::vector<at::Tensor> LazyGraph::run_compiled(std::vector<IValue> arguments) {
  const CountedRun counted(counts_, GraphForm::compiled);
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_casts(c10::autocast_dispatch_keyset);
  std::vector<at::Tensor> results = program_.run(std::move(arguments));
  for (at::Tensor& each : results) each = each.contiguous();
  return results;
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
