"""Code of withdrawn operators is overwritten in each of PyTorch's libraries, or refused on another machine."""

import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.worker import withdrawn_code
from autograder.worker.source import AnswerError

LIBRARIES = {"libtorch_cpu.so": 3, "libtorch_other.so": 4}  # and the number that its functions return
SOURCE = "namespace at::native {{ int probe{0}(int) {{ return {0}; }} int kept{0}(int) {{ return {0}; }} }}"
PROGRAM = """
import ctypes, platform, sys
from pathlib import Path
from autograder.worker import withdrawn_code

folder, machine, called, of = sys.argv[1:]
flushed, flush = [], withdrawn_code._flush
withdrawn_code._flush = lambda begin, length: (flushed.append((begin, length)), flush(begin, length))
platform.machine = lambda: machine
withdrawn_code.LIBRARIES = Path(folder)
withdrawn_code.remove_code(["probe"])
function = ctypes.CDLL(folder + "/" + of)[called]
address = ctypes.cast(function, ctypes.c_void_p).value
print(any(begin <= address < begin + length for begin, length in flushed), flush=True)
if machine != "aarch64":
    print(function(0))
else:
    print(ctypes.string_at(address, 4).hex())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two libraries, each with one function to withdraw and one to keep."""
    made = tmp_path_factory.mktemp("libraries")
    for name, number in LIBRARIES.items():
        (made / "source.cpp").write_text(SOURCE.format(number))
        subprocess.run(["g++", "-shared", "-fPIC", "-o", made / name, made / "source.cpp"], check=True)
    return made


def ended(folder: Path, machine: str, name: str, library: str) -> tuple[int, list[str]]:
    """Withdraw in a process of its own, then call a function of a library; return its status and what it printed."""
    symbol = f"_ZN2at6native{len(name)}{name}Ei"
    command = [sys.executable, "-c", PROGRAM, str(folder), machine, symbol, library]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_library_exports_is_overwritten_and_the_rest_runs(folder: Path, library: str) -> None:
    number, machine = LIBRARIES[library], platform.machine()
    flushes = str(machine != "x86_64")
    assert ended(folder, machine, f"kept{number}", library)[1][-1] == str(number)
    assert ended(folder, machine, f"probe{number}", library) == (-signal.SIGILL, [flushes])


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_processor_that_keeps_instructions_is_told(folder: Path, library: str) -> None:
    assert ended(folder, "aarch64", f"probe{LIBRARIES[library]}", library) == (0, ["True", "00000000"])


@pytest.mark.parametrize(("system", "machine"), [("Linux", "riscv64"), ("Darwin", "x86_64")])
def test_another_machine_is_refused_by_one_sentence(system: str, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    with pytest.raises(AnswerError, match=f"Linux on x86_64 and aarch64, not for {system} on {machine}: check it on"):
        withdrawn_code.remove_code(["probe"])
