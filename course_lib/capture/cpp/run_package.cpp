// Loads an AOTInductor package, runs it on tensors from a file, and writes what it gives to another file.
//
//     run_package program.pt2 inputs.pt output.pt
//
// No Python takes part: the package holds compiled kernels and weights.

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

// From torch/csrc/jit/serialization/pickle.h, which would have g++ read all of TorchScript.
namespace torch::jit {
TORCH_API std::vector<char> pickle_save(const c10::IValue& ivalue);
TORCH_API c10::IValue pickle_load(const std::vector<char>& data);
}  // namespace torch::jit

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: run_package PROGRAM INPUTS OUTPUT\n";
    return 2;
  }
  try {
    c10::InferenceMode no_gradients;
    torch::inductor::AOTIModelPackageLoader program(argv[1]);

    std::ifstream file(argv[2], std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<at::Tensor> inputs;
    const c10::IValue given = torch::jit::pickle_load(bytes);
    for (const c10::IValue& input : given.toTupleRef().elements()) {
      inputs.push_back(input.toTensor());
    }

    std::vector<char> output = torch::jit::pickle_save(program.run(inputs));
    std::ofstream(argv[3], std::ios::binary).write(output.data(), static_cast<std::streamsize>(output.size()));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
