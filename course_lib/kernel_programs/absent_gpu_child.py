"""Compile one kernel for a GPU that is not here, in a process of its own: `absent_gpu` starts it.

    python absent_gpu_child.py FOLDER

FOLDER holds the kernel's text as the module `kernel_text`. Standard input says what to compile, standard output what
came out.
"""

import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path


def main(folder: str) -> None:
    """Compile, and print the counts."""
    sys.path.insert(0, folder)
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    asked = json.load(sys.stdin)
    kernel = getattr(importlib.import_module("kernel_text"), asked["name"])
    constants = asked["constants"]
    types = {name: asked["types"].get(name, "constexpr") for name in kernel.arg_names}
    signature = {name: kind.removesuffix(":16") for name, kind in types.items()}
    divisible = (i for i, kind in enumerate(types.values()) if kind.startswith("*") or kind.endswith(":16"))
    aligned = {(i,): [["tt.divisibility", 16]] for i in divisible}
    source = ASTSource(kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", asked["capability"], 32))
    ptx = compiled.asm["ptx"]
    registers, spilled = resources(compiled.asm.get("cubin", b""))
    json.dump(
        {
            "registers": registers,
            "spilled_bytes": spilled,
            "loads": Counter(re.findall(r"ld\.global[.\w]*", ptx)),
            "stores": Counter(re.findall(r"st\.global[.\w]*", ptx)),
            "ptx": ptx,
        },
        sys.stdout,
    )


def resources(cubin: bytes) -> tuple[int | None, int | None]:
    """Return registers of a thread and bytes of its local memory; None where Triton brings no tool to read them.

    What finds no register lies on the thread's stack, which is a part of local memory.
    """
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not cubin or not tool.exists():
        return None, None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "--dump-resource-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    registers, stack, local = (int(re.findall(rf"{word}:(\d+)", told)[0]) for word in ("REG", "STACK", "LOCAL"))
    return registers, stack + local


if __name__ == "__main__":
    main(sys.argv[1])
