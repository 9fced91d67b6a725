// Two passes of ours over TorchScript's graphs, and how Python switches them on.
//
//   rewrite   matches relu(x + b) and puts one operator of ours, course_script::bias_relu, in its place
//   compile   gathers chains of pointwise operators into groups, and runs each group by a small compiler of ours:
//             one loop over the elements, made once per shape and kept
//
// A pass that is registered runs on every graph that the executor optimises from then on, in the whole process.

#define AT_PER_OPERATOR_HEADERS  // or g++ would read all of ATen's operators, not the two that are called here

#include <ATen/ops/add.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/subgraph_matcher.h>
#include <torch/csrc/jit/passes/graph_fuser.h>
#include <torch/csrc/jit/passes/pass_manager.h>
#include <torch/csrc/jit/passes/subgraph_rewrite.h>
#include <torch/csrc/jit/runtime/custom_operator.h>
#include <torch/csrc/jit/runtime/interpreter.h>
#include <torch/library.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

using namespace torch::jit;

// ---- rewrite: a pattern, a replacement, and the operator that the replacement calls

at::Tensor bias_relu(const at::Tensor& x, const at::Tensor& b) {
  return at::add(x, b).relu_();
}

void rewrite_bias_relu(std::shared_ptr<Graph>& graph) {
  const std::string pattern = R"(
    graph(%x, %b, %one):
      %sum = aten::add(%x, %b, %one)
      %out = aten::relu(%sum)
      return (%out))";
  const std::string replacement = R"(
    graph(%x, %b, %one):
      %out = course_script::bias_relu(%x, %b)
      return (%out))";
  SubgraphRewriter rewriter;
  rewriter.RegisterRewritePattern(pattern, replacement);
  // x + alpha * b is another sum: only alpha = 1 may go
  const MatchFilter adds_once = [](const Match& match, const std::unordered_map<std::string, Value*>& names) {
    const auto one = toIValue(match.values_map.at(names.at("one")));
    return one && one->isInt() && one->toInt() == 1;
  };
  rewriter.runOnGraph(graph, adds_once);
}

// ---- compile: what a group is, what it becomes, and when it must not be used

const Symbol kGroup = Symbol::fromQualString("course_script::group");
int64_t compilations = 0, fallbacks = 0;

bool is_pointwise(Node* node) {
  static const std::vector<Symbol> kinds = {aten::mul, aten::tanh, aten::sigmoid, aten::relu};
  if (std::find(kinds.begin(), kinds.end(), node->kind()) == kinds.end()) {
    return false;
  }
  for (Value* input : node->inputs()) {
    if (!input->type()->isSubtypeOf(*TensorType::get())) {
      return false;  // a number among the operands: left to PyTorch
    }
  }
  return true;
}

struct Step {  // registers: the inputs first, then one for each step
  Symbol kind;
  size_t left, right;
};

class Group {
 public:
  explicit Group(const Node* node) : graph_(node->g(attr::Subgraph)->copy()), code_(graph_, "group") {}

  void run(Stack& stack) {
    const size_t count = graph_->inputs().size();
    std::vector<at::Tensor> inputs;
    for (const IValue& value : last(stack, count)) {
      inputs.push_back(value.toTensor());
    }
    if (!loopable(inputs)) {
      fallbacks += 1;
      InterpreterState(code_).run(stack);
      return;
    }
    std::vector<at::Tensor> outputs = loop(plan(inputs[0].sizes().vec()), inputs);
    drop(stack, count);
    for (at::Tensor& output : outputs) {
      stack.emplace_back(std::move(output));
    }
  }

 private:
  static bool loopable(const std::vector<at::Tensor>& inputs) {
    for (const at::Tensor& t : inputs) {
      if (t.scalar_type() != at::kFloat || !t.is_contiguous() || t.sizes() != inputs[0].sizes() || t.requires_grad()) {
        return false;
      }
    }
    return !inputs.empty();
  }

  const std::vector<Step>& plan(const std::vector<int64_t>& shape) {
    auto found = plans_.find(shape);
    if (found != plans_.end()) {
      return found->second;
    }
    compilations += 1;
    std::map<Value*, size_t> registers;
    for (Value* input : graph_->inputs()) {
      registers.emplace(input, registers.size());
    }
    std::vector<Step> steps;
    for (Node* node : graph_->nodes()) {
      size_t left = registers.at(node->input(0));
      steps.push_back({node->kind(), left, node->inputs().size() > 1 ? registers.at(node->input(1)) : left});
      registers.emplace(node->output(), registers.size());
    }
    results_.clear();
    for (Value* output : graph_->outputs()) {
      results_.push_back(registers.at(output));
    }
    return plans_.emplace(shape, std::move(steps)).first->second;
  }

  static float apply(const Step& step, float a, float b) {
    if (step.kind == aten::mul) return a * b;
    if (step.kind == aten::tanh) return std::tanh(a);
    if (step.kind == aten::sigmoid) return 1.0f / (1.0f + std::exp(-a));
    return a > 0 || std::isnan(a) ? a : 0.0f;
  }

  std::vector<at::Tensor> loop(const std::vector<Step>& steps, const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs;
    for (size_t i = 0; i < results_.size(); ++i) {
      outputs.push_back(at::empty_like(inputs[0]));
    }
    std::vector<float> values(inputs.size() + steps.size());
    for (int64_t i = 0; i < inputs[0].numel(); ++i) {
      for (size_t r = 0; r < inputs.size(); ++r) {
        values[r] = inputs[r].const_data_ptr<float>()[i];
      }
      for (size_t s = 0; s < steps.size(); ++s) {
        values[inputs.size() + s] = apply(steps[s], values[steps[s].left], values[steps[s].right]);
      }
      for (size_t o = 0; o < outputs.size(); ++o) {
        outputs[o].mutable_data_ptr<float>()[i] = values[results_[o]];
      }
    }
    return outputs;
  }

  std::shared_ptr<Graph> graph_;
  Code code_;
  std::map<std::vector<int64_t>, std::vector<Step>> plans_;
  std::vector<size_t> results_;
};

Operation run_group(const Node* node) {
  auto group = std::make_shared<Group>(node);
  return [group](Stack& stack) { group->run(stack); };
}

RegisterOperators group_operator({Operator(kGroup, run_group, c10::AliasAnalysisKind::PURE_FUNCTION)});

void compile_pointwise(std::shared_ptr<Graph>& graph) {
  CustomFuseGraph(graph, is_pointwise, kGroup);
}

// ---- switches

std::map<std::string, std::optional<GraphPassNameType>> registered;

void enable(const std::string& name, bool on) {
  std::optional<GraphPassNameType>& slot = registered[name];
  if (on && !slot) {
    slot = registerPostPass(name == "rewrite" ? rewrite_bias_relu : compile_pointwise);
  } else if (!on && slot) {
    clearPostPass(*slot);
    slot.reset();
  }
}

std::tuple<int64_t, int64_t> counts() {
  return {compilations, fallbacks};
}

TORCH_LIBRARY(course_script, m) {
  m.def("bias_relu(Tensor x, Tensor b) -> Tensor", bias_relu);
  m.def("enable(str name, bool on) -> ()", enable);
  m.def("counts() -> (int compilations, int fallbacks)", counts);
}
