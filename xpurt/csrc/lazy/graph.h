// A traced graph as torch::lazy's computation: its TorchScript, its shapes, and its
// run.
#pragma once

#include <torch/csrc/lazy/ts_backend/ts_lowering_context.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "host/mutex.h"
#include "lazy/graph_runs.h"
#include "lazy/steps.h"
#include "schedule/planning/two_forms.h"

namespace xpurt {

class LazyGraph;

// A graph in compiled form.
struct LazyProgram {
  // Takes the arguments, and returns the results. Empty: there is no program.
  std::function<std::vector<at::Tensor>(std::vector<c10::IValue>)> run;
  // Whether it is compiled for these arguments. Empty: it is for all.
  std::function<bool(const std::vector<c10::IValue>&)> takes;
};

struct LazyCompiler {
  // Returns an empty program if the graph can't be compiled. `arguments` are those of
  // the run that it is compiled for.
  using Make = std::function<LazyProgram(LazyGraph& graph,
                                         const std::vector<c10::IValue>& arguments)>;
  Make compile;
  // Asked before the first run of a graph, and may be empty: a program that was
  // compiled for another graph, and serves this one; or an empty one.
  Make find;
  // Whether a graph is compiled before its first run. Else: see Note [When a graph is
  // compiled].
  bool at_once = false;
};

// Graphs that have not been compiled are compiled by it from now on. Without `compile`
// none is.
void set_lazy_compiler(LazyCompiler compiler);

// Note [When a graph is compiled]
// ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
// A graph op by op is the first form of Note [Two forms], and the compiled graph is the
// second one. Its price is the time that compiling is expected to take. So the first
// round compiles the graph. If it is compiled before, the price is 0. If compiling
// fails, the second form is refused.
//
// A run whose arguments the program does not take is op by op, and no turn of a round.
// Where results have to repeat bit for bit no time may choose the form. Then all runs
// are op by op; or all are compiled, if each graph is compiled before its first run.
class LazyGraph final : public torch::lazy::TSComputation {
 public:
  LazyGraph(const std::shared_ptr<torch::jit::Graph>& graph,
            std::vector<torch::lazy::Shape> parameters,
            std::vector<torch::lazy::Shape> results);

  const std::vector<torch::lazy::Shape>& parameter_shapes() const override {
    return parameters_;
  }
  // Of the first result: the interface has a single one. `result_shapes` has all.
  const torch::lazy::Shape& result_shape() const override { return results_.at(0); }
  const std::vector<torch::lazy::Shape>& result_shapes() const { return results_; }

  // Whether each parameter is used as a number alone. Such a one stays on the host.
  bool is_number(size_t parameter) const { return is_number_.at(parameter); }

  // On the device, in the form that is due.
  std::vector<at::Tensor> run(std::vector<c10::IValue> arguments, c10::Device device);

  // "lazy graph 3 of 71 ops"
  std::string name() const { return counts_.name(); }
  // While it is not compiled: its runs, and how long one takes. 0: not timed yet.
  int runs() const { return runs_; }
  double run_us() const { return run_us_; }
  // It is compiled when its runs have taken as long as this.
  double due_us() const;

 private:
  // How to run with these arguments. Compiles the graph if the form needs it.
  FormTurn next_turn(const std::vector<c10::IValue>& arguments);
  // Another thread that runs the graph meanwhile does so op by op.
  void find_program(const LazyCompiler::Make& find,
                    const std::vector<c10::IValue>& arguments);
  void compile_program(const LazyCompiler::Make& compile,
                       const std::vector<c10::IValue>& arguments);
  FormTurn next_of_both();
  void refuse_program();
  std::vector<at::Tensor> run_in_form(bool compiled,
                                      std::vector<c10::IValue> arguments);
  std::vector<at::Tensor> run_op_by_op(std::vector<c10::IValue> arguments);
  std::vector<at::Tensor> run_compiled(std::vector<c10::IValue> arguments);
  std::vector<at::Tensor> run_timed(bool compiled, std::vector<c10::IValue> arguments,
                                    c10::Device device);

  const std::vector<torch::lazy::Shape> parameters_, results_;
  std::vector<bool> is_number_;
  const Steps steps_;
  std::atomic<int> runs_{0};
  std::atomic<double> run_us_{0};  // op by op; 0 before it was timed
  std::atomic<bool> is_searched_{false}, is_claimed_{false}, has_program_{false};
  LazyProgram program_;  // written once, before has_program_
  Mutex forms_mutex_{Rank::lazy_compiler};
  std::optional<TwoForms> forms_;  // none: nothing was measured yet
  GraphRuns counts_;               // the last member: a visitor of it reads the others
};

// A graph that ran, as it is now.
struct LazyGraphState {
  std::string name, text;
  int runs;
  double run_us, due_us;
};
std::vector<LazyGraphState> lazy_graph_states();

// The lowering of torch::lazy's nodes to TorchScript, with what the wheel's lacks: the
// shapes of the graph, and parameters that are added by hand.
class Lowering final : public torch::lazy::TSLoweringContext {
 public:
  using TSLoweringContext::TSLoweringContext;

  size_t AddResult(const torch::lazy::Output& output) override;
  void AddParameter(const torch::lazy::Output& output, size_t index,
                    const torch::lazy::Shape& shape, const std::string& name) override;
  bool CheckResultShape(const torch::lazy::BackendDataPtr& parameter,
                        size_t result) override;
  torch::lazy::ComputationPtr Build() override;

 private:
  std::vector<torch::lazy::Shape> added_, results_;
};

}  // namespace xpurt
