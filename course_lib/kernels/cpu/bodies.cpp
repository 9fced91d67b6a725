// Register the bodies as operators that the fused operators call on a CPU; they check no more than memory needs.

#include "bias_activation.h"
#include "residual_norm.h"

#include <torch/library.h>

TORCH_LIBRARY(course_lib_cpu, library) {
  library.def("activate(Tensor x, Tensor bias, str activation) -> Tensor");
  library.def("activation_gradients(Tensor grad, Tensor x, Tensor bias, str activation) -> (Tensor, Tensor)");
  library.def(
      "normalise(Tensor x, Tensor? vector, Tensor residual, Tensor weight, Tensor? bias, Tensor? seed, float p, "
      "float eps, bool multiplies) -> Tensor");
  library.def(
      "norm_gradients(Tensor grad, Tensor x, Tensor? vector, Tensor residual, Tensor weight, Tensor? bias, "
      "Tensor? seed, float p, float eps, bool multiplies) -> (Tensor, Tensor, Tensor, Tensor, Tensor)");
}

TORCH_LIBRARY_IMPL(course_lib_cpu, CPU, library) {
  library.impl("activate", course_lib::activate);
  library.impl("activation_gradients", course_lib::activation_gradients);
  library.impl("normalise", course_lib::normalise);
  library.impl("norm_gradients", course_lib::norm_gradients);
}
