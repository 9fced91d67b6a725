// Loads a saved program, runs it on tensors from a file, and writes what it gives to another file.
//
//     run_saved script program.pt inputs.pt output.pt      a TorchScript archive: code and weights
//     run_saved package program.pt2 inputs.pt output.pt    an AOTInductor package: compiled kernels and weights
//
// No Python takes part.

#define AT_PER_OPERATOR_HEADERS  // or g++ would read all of ATen's operators, of which none is called here

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

// From torch/csrc/jit/serialization/pickle.h, which would have g++ read the whole pickler.
namespace torch::jit {
TORCH_API std::vector<char> pickle_save(const c10::IValue& ivalue);
TORCH_API c10::IValue pickle_load(const std::vector<char>& data);
}  // namespace torch::jit

c10::IValue run_script(const std::string& program, const std::vector<c10::IValue>& inputs) {
  return torch::jit::load(program).forward(inputs);
}

c10::IValue run_package(const std::string& program, const std::vector<c10::IValue>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& input : inputs) {
    tensors.push_back(input.toTensor());
  }
  return torch::inductor::AOTIModelPackageLoader(program).run(tensors);
}

int main(int argc, char** argv) {
  const std::string kind = argc == 5 ? argv[1] : "";
  if (kind != "script" && kind != "package") {
    std::cerr << "usage: run_saved script|package PROGRAM INPUTS OUTPUT\n";
    return 2;
  }
  try {
    c10::InferenceMode no_gradients;
    std::ifstream file(argv[3], std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<c10::IValue> inputs = torch::jit::pickle_load(bytes).toTupleRef().elements().vec();

    std::vector<char> output = torch::jit::pickle_save((kind == "script" ? run_script : run_package)(argv[2], inputs));
    std::ofstream(argv[4], std::ios::binary).write(output.data(), static_cast<std::streamsize>(output.size()));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
