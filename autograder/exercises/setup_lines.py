"""Lines of the set-up cells of several notebooks; the `setup` of an exercise consists of such lines."""

NN = "import torch\nfrom torch import nn\nfrom torch.nn import functional as F\n"
MATH_AND_NN = f"import math\n{NN}"
FX = "import torch\nfrom torch import fx, nn\nfrom torch.nn import functional as F\n"
OPERATOR_AND_FX = f"import operator\n{FX}"
KERNELS = f"{OPERATOR_AND_FX}import course_lib.kernels\n"
