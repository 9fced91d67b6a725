"""Run a script with a Triton that reads the environment anew, in a process that has loaded one already.

    python fresh_triton.py SCRIPT ...

Triton decides when it is imported whether it interprets, and a fork of the tests' process has imported it.
"""

import os
import runpy
import sys
from types import SimpleNamespace


def forget_triton() -> None:
    """Have Triton and the kernels imported again; its compiled library, which knows no environment, stays."""
    for name in list(sys.modules):
        ours = name.startswith("course_lib.kernels.triton")
        if ours or (name.split(".")[0] == "triton" and not name.startswith("triton._C")):
            del sys.modules[name]


def patch_language_once() -> None:
    """Let Triton's interpreter put its own functions into the language now, and for good.

    By itself it does so in each call of a function inside a kernel, and takes them out after each kernel.
    """
    import triton.language as tl
    from triton.runtime import interpreter

    interpreter._patch_lang(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    interpreter._patch_lang = lambda function: interpreter._LangPatchScope()


if __name__ == "__main__":
    forget_triton()
    if os.environ.get("TRITON_INTERPRET") == "1":
        patch_language_once()
        if "course_lib.kernels.dispatch" in sys.modules:
            sys.modules["course_lib.kernels.dispatch"]._INTERPRETS = True  # as if it had been imported now
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
