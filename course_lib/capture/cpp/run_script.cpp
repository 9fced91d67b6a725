// Loads a TorchScript archive, runs it on tensors from a file, and writes what it gives to another file.
//
//     run_script program.pt inputs.pt output.pt
//
// No Python takes part: the archive holds code and weights.

#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: run_script PROGRAM INPUTS OUTPUT\n";
    return 2;
  }
  try {
    c10::InferenceMode no_gradients;
    torch::jit::Module program = torch::jit::load(argv[1]);

    std::ifstream file(argv[2], std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::vector<c10::IValue> inputs = torch::jit::pickle_load(bytes).toTupleRef().elements().vec();

    std::vector<char> output = torch::jit::pickle_save(program.forward(inputs));
    std::ofstream(argv[3], std::ios::binary).write(output.data(), static_cast<std::streamsize>(output.size()));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  return 0;
}
