"""Strategy: paste the course's pass for bias and GELU with all that it imports, under another package's name. Surface: files of course_lib on the student's own machine.

Class: answer theft. Unprotected: grader spared gives full marks. Level: 5.
Must get 0: the files of the passes stay in the worker, so that the methods of a pass are told from what they do.
"""

import importlib.abc
import importlib.util
import sys

SOURCES = {}

SOURCES["mine.calls"] = r'''
# The file course_lib/fusion/calls.py of this repository stands here.
'''
SOURCES["mine.effects"] = r'''
# The file course_lib/fusion/effects.py of this repository stands here.
'''
SOURCES["mine.expressions.casts"] = r'''
# The file course_lib/fusion/expressions/casts.py of this repository stands here.
'''
SOURCES["mine.expressions.formula_pattern"] = r'''
# The file course_lib/fusion/expressions/formula_pattern.py of this repository stands here.
'''
SOURCES["mine.expressions.polynomial"] = r'''
# The file course_lib/fusion/expressions/polynomial.py of this repository stands here.
'''
SOURCES["mine.fusion_pass"] = r'''
# The file course_lib/fusion/fusion_pass.py of this repository stands here.
'''
SOURCES["mine.guards"] = r'''
# The file course_lib/fusion/guards.py of this repository stands here.
'''
SOURCES["mine.inserted_modules"] = r'''
# The file course_lib/fusion/inserted_modules.py of this repository stands here.
'''
SOURCES["mine.kept_state"] = r'''
# The file course_lib/fusion/kept_state.py of this repository stands here.
'''
SOURCES["mine.matching"] = r'''
# The file course_lib/fusion/matching.py of this repository stands here.
'''
SOURCES["mine.operands"] = r'''
# The file course_lib/fusion/operands.py of this repository stands here.
'''
SOURCES["mine.operators"] = r'''
# The file course_lib/fusion/operators.py of this repository stands here.
'''
SOURCES["mine.passes.bias_gelu"] = r'''
# The file course_lib/fusion/passes/bias_gelu.py of this repository stands here.
'''
SOURCES["mine.passes.formulas"] = r'''
# The file course_lib/fusion/passes/formulas.py of this repository stands here.
'''
SOURCES["mine.result"] = r'''
# The file course_lib/fusion/result.py of this repository stands here.
'''
SOURCES["mine.rules"] = r'''
# The file course_lib/fusion/rules.py of this repository stands here.
'''
SOURCES["mine.storage"] = r'''
# The file course_lib/fusion/storage.py of this repository stands here.
'''
SOURCES["mine.supposition"] = r'''
# The file course_lib/fusion/supposition.py of this repository stands here.
'''
SOURCES["mine.surgery"] = r'''
# The file course_lib/fusion/surgery.py of this repository stands here.
'''
PACKAGES = {"mine", *(name.rpartition(".")[0] for name in SOURCES)}


class Pasted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name in SOURCES or name in PACKAGES:
            return importlib.util.spec_from_loader(name, self, is_package=name in PACKAGES)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        text = SOURCES.get(module.__name__, "").replace("course_lib.fusion", "mine")
        exec(compile(text, "<answer>", "exec"), module.__dict__)


sys.meta_path.insert(0, Pasted())

from mine.passes.bias_gelu import BiasGelu
from mine.passes.formulas import Formulas
from mine.surgery import describe_new_nodes, finish


def fuse_bias_gelu(graph_module):
    Formulas().transform(graph_module)
    describe_new_nodes(graph_module)
    BiasGelu().transform(graph_module)
    finish(graph_module)
    return graph_module
