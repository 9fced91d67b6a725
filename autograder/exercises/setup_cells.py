"""The imports of each notebook's set-up cell: what an answer may use without importing it.

The worker gets those that the answer names, except what the exercise masks; `autograder release` compares them with
the notebooks. See `autograder.host.setup_imports`.
"""

SETUP_CELLS: dict[str, str] = {
    "start_here": """\
import torch
from torch import fx, nn
from autograder.practice import hint, progress
from course_lib.doctor import doctor
from course_lib.graph import draw, table
""",
    "transformer": """\
import math
import tempfile
from pathlib import Path
import matplotlib.pyplot as plt
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch.nn import functional as F
from torch.utils.tensorboard import SummaryWriter
from transformers import BertConfig, BertLMHeadModel
from transformers.models.bert.modeling_bert import BertLayer
from course_lib import training
from course_lib.models import MaskedLanguageModel, TransformerConfig
from course_lib.models import TransformerLayer, copy_bert_weights, copy_layer_weights
from course_lib.models.huggingface import parameter_pairs
""",
    "measuring": """\
import json
import random
import statistics
import tempfile
import time
from contextlib import contextmanager
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
import torch
from matplotlib import pyplot as plt
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.benchmark import Timer
from course_lib.graph import cost
from course_lib.graph.roofline import measure_device, named_devices, predict
from course_lib.models import program_from_steps
from course_lib.models import workload
from course_lib.profiling import annotate, count_flops, inference_report, profile_operators
from course_lib.timing import environment
from course_lib.timing import NoisyMachine, SimulatedDevice, compare, time_callable
""",
    "torchscript": """\
import inspect
import math
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
import torch
from torch import nn
from torch.nn import functional as F
from course_lib.capture import capture, compare_modes
from course_lib.capture.saved_programs import freeze, load, save
from course_lib.capture.cpp import build_passes, build_runner
from course_lib.capture.script_graphs import fusing_with, has_llvm
from course_lib.capture.fusion_groups import optimized_graph
from course_lib.capture.script_graphs import graph_of
from course_lib.capture.script_graphs import rewrite_script
from course_lib.errors import CaptureError
from course_lib.models import LSTMCell, RecurrentNetwork
from course_lib.models.small_programs import SMALL_PROGRAMS
from course_lib.timing import time_callable
""",
    "fx_capture": """\
import operator
import torch
from torch import fx, nn
from torch.nn import functional as F
from course_lib.capture import capture
from course_lib.errors import CaptureError
from course_lib.graph import count_operators, draw, propagate_shapes, table
""",
    "fx_rewrite": """\
import copy
import inspect
import operator
import torch
from torch import fx, nn
from torch.fx.passes.utils.matcher_utils import SubgraphMatcher
from torch.nn import functional as F
import course_lib.kernels
from course_lib.errors import FusionError
from course_lib.fusion import PASSES, MatmulScale, fuse, fuse_bias_gelu, mistaken
from course_lib.graph import cost, count_operators, propagate_shapes, table
""",
    "schedules": """\
import torch
from torch import fx, nn
from torch.nn import functional as F
import course_lib.kernels
from course_lib.errors import ScheduleError
from course_lib.graph import cost, count_operators, table
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.schedule import Matches, Schedule, call_module, create_schedule, verify
""",
    "dynamo": """\
import logging
import operator
from collections import Counter
import numpy as np
import torch
from torch import nn
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupport
from torch.fx.passes.split_module import split_module
from torch.nn import functional as F
from transformers import BertConfig, BertLMHeadModel
from course_lib.backends import Backend, lower
from course_lib.backends.toy import ToyTarget
from course_lib.capture import capture, compare_modes, logged
from course_lib.graph import propagate_shapes
from course_lib.models.steps import program_of, source_of
""",
    "aot_autograd": """\
import functools
import math
import networkx as nx
import torch
from torch.nn import functional as F
from functorch.compile import default_partition, make_boxed_func, min_cut_rematerialization_partition
from torch._decomp import get_decompositions
from torch._functorch.aot_autograd import aot_function
from torch.fx.experimental.proxy_tensor import make_fx
from course_lib.capture import capture
from course_lib.graph import saved_for_backward
from course_lib.graph.joint_graph import cut_at, saved_bytes
from course_lib.show import Table
""",
    "inductor": """\
import re
import shutil
import time
from math import prod
import torch
from torch._dynamo.utils import counters
from torch._inductor import config
from torch._inductor.utils import fresh_cache
from torch.nn import functional as F
from course_lib.graph import scheduled
from course_lib.graph.generated_code import lowered
from course_lib.graph.source_map import source_map
from course_lib.models import option_programs, program_from_steps
from course_lib.models.chains import inputs_of, program_of, source_of
""",
    "backends": """\
import itertools
import operator
import torch
from matplotlib import pyplot as plt
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
from torch.fx.passes.operator_support import OperatorSupport
from torch.fx.passes.utils.fuser_utils import fuse_by_partitions
from torch.nn import functional as F
from course_lib.backends import Backend, CompileCache, Prices, Support, argument_is, dtypes, lower, rank_at_most
from course_lib.backends.life import draw_life
from course_lib.backends.sweeps import settle
from course_lib.backends.toy import ToyTarget
from course_lib.backends.toy.registers import allocate
from course_lib.capture import capture
from course_lib.graph import draw, saved_for_backward
from course_lib.graph.diff import diff, draw_diff
from course_lib.machine import Access, Instruction, Machine, Register, assemble
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.predictions import predict, predictions, reveal
from course_lib.show import Table, format_bytes
""",
    "custom_operators": """\
import math
import operator
import torch
from torch import fx
from torch._inductor import config
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch._inductor.pattern_matcher import PatternMatcherPass, fwd_only, register_replacement
from torch._inductor.utils import fresh_cache
from torch.library import custom_op, opcheck
from torch.nn import functional as F
import course_lib.kernels
from course_lib.graph import cost, count_operators, draw, propagate_shapes
from course_lib.graph.diff import diff, draw_diff
from course_lib.inductor_passes import HOOKS, calls_of, calls_of_chain, chain_of, decomposed
from course_lib.inductor_passes import fuse_loosely, graphs_at_hooks, with_fake_values
from course_lib.predictions import predict, predictions, reveal
from course_lib.show import Table
""",
    "triton_kernels": """\
import warnings
import torch
from torch import Tensor
from torch.nn import functional as F
from course_lib.errors import KernelError
from course_lib.graph import cost, saved_for_backward
from course_lib.kernel_programs import AccessLog, compile_for_absent_gpu, try_launcher, use_interpreter
from course_lib.kernel_programs.compiled_loops import compiled_loop
from course_lib.kernel_programs.interpreter import triton_runs_on
from course_lib.kernels.dropout import uniform_numbers
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling.heat_maps import heat_map
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_us
from course_lib.timing import compare, time_callable
from course_lib.verify.error_rule import deviation
""",
    "attention": """\
import math
import warnings
from functools import partial
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.profiler import profile
from course_lib.graph import cost, saved_for_backward
from course_lib.graph.generated_code import lowered
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.models.transformer import attention_probabilities, scaled_dot_product
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling import profile_operators
from course_lib.profiling.heat_maps import block_map, heat_map
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_bytes, format_us
from course_lib.timing import time_callable
""",
    "shipping": """\
import copy
import io
import logging
import math
import re
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from contextlib import redirect_stderr
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
import onnx
import torch
from torch import fx, nn
from torch._dynamo.exc import UserError
from torch.export import Dim, ExportedProgram, export
from torch.nn import functional as F
from course_lib.capture.cpp import build_runner
from course_lib.errors import CaptureError
from course_lib.fusion import fuse
from course_lib.graph import cost, draw, saved_for_backward
from course_lib.graph.diff import diff, draw_diff
from course_lib.graph.viewers import open_in_model_explorer, open_in_netron
from course_lib.kernels import bias_gelu
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_bytes, format_us
from course_lib.timing import time_callable
""",
    "launch_overhead": """\
import warnings
import torch
from torch.nn import functional as F
from course_lib.capture import logged
from course_lib.errors import LaunchError
from course_lib.graph import saved_for_backward
from course_lib.launches import Graph, eager_timeline, recording, replay_timeline, silent_errors, warm_up
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_bytes
""",
    "lightning_training": """\
import logging
import tempfile
import warnings
from pathlib import Path
import lightning
import torch
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.profilers import SimpleProfiler
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch import nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional as F
from torch.utils.data import DataLoader
from course_lib import training
from course_lib.graph import cost, saved_for_backward
from course_lib.graph.generated_code import lowered
from course_lib.models import MaskedLanguageModel, TransformerConfig, TransformerLayer
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_bytes
""",
    "capstone": """\
import copy
import inspect
import operator
import torch
from torch import fx, nn
from torch._dynamo.testing import CompileCounter
from torch.nn import functional as F
from course_lib.fusion.machine_written import fuse_add_norm
from course_lib.graph import cost, saved_for_backward
from course_lib.graph.diff import diff, draw_diff
from course_lib.kernel_programs import use_interpreter
from course_lib.kernel_programs.kernel_operator import kernel_operator
from course_lib.models import TransformerConfig, TransformerLayer
from course_lib.predictions import predict, predictions, reveal
from course_lib.profiling.plots import plot_lines
from course_lib.show import Table, format_bytes, format_us
from course_lib.timing import environment, time_callable
""",
}
"""By the lesson's package; the lines stand in the set-up cell of its notebook."""
