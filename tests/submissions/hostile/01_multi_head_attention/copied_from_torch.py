"""Strategy: run a copy of PyTorch's own multi-head attention, with other names in it. Surface: the text of the functions that do the task.

Class: answer theft. Unprotected: grader one_module gives full marks. Level: 5.
Must get at most 1.6: a copy is told by its instructions; the names and shapes of the parameters are right.
"""

import inspect
from types import SimpleNamespace

# The file tests/submissions/hostile/01_multi_head_attention/attention_of_torch.py of this repository stands here.

source = inspect.getsource(F.multi_head_attention_forward)
space = dict(vars(F))
exec(source.replace("embed_dim_to_check", "size_to_check"), space)
F = SimpleNamespace(multi_head_attention_forward=space["multi_head_attention_forward"])
