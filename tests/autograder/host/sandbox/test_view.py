"""Which files a worker sees, and which modules it can import."""

import importlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.host.sandbox import Ending, Limits, Sandbox, SandboxError, open_sandbox, view
from autograder.host.sandbox.levels import Level
from autograder.host.sandbox.view import Bind, Cover, Link, course, file_system, with_parents
from tests.autograder.host.sandbox.conftest import LIMITS, MIB, OWN_TIERS, by_name
from tests.drawn import some

LARGE = Limits(wall_s=30.0, memory_bytes=2048 * MIB)
LIST_COURSE = (
    "import glob, os, sys\n"
    "found = glob.glob(sys.path[0] + '/**', recursive=True)\n"  # through links, unlike pathlib
    "print(*sorted(os.path.relpath(place, sys.path[0]) for place in found if os.path.isfile(place)))"
)
IMPORT = "import importlib\ntry: importlib.import_module({!r})\nexcept ModuleNotFoundError as error: print(error)"


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user may enter, unlike those of pytest, and not where a worker has its own /tmp."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


@pytest.fixture
def library(public: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for course_lib with a package, a module and their byte code."""
    root = public / "course_lib"
    for name in ("__init__.py", "models/__init__.py", "models/layer.py", "fusion/__init__.py", "fusion/secret.py"):
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch()
        cached = place.parent / "__pycache__" / f"{place.stem}.cpython-311.pyc"
        cached.parent.mkdir(exist_ok=True)
        cached.write_text("byte code")
    monkeypatch.setattr(view, "course_lib", lambda: root)
    return root


def test_a_worker_sees_only_protocol_and_worker_of_the_grader(tier: Sandbox, run: Callable[..., Ending]) -> None:
    files = run(tier, LIST_COURSE).output.split()

    assert "course_lib/__init__.py" in files
    assert "autograder/__init__.py" in files
    ours = {Path(file).parts[1] for file in files if file.startswith("autograder/")}
    assert ours <= {"__init__.py", "protocol", "worker"}


@pytest.mark.parametrize("name", ["autograder.host", "autograder.practice", "tests"])
def test_the_rest_of_the_project_cannot_be_imported(name: str, tier: Sandbox, run: Callable[..., Ending]) -> None:
    assert "No module named" in run(tier, IMPORT.format(name)).output


def test_no_other_folder_holds_a_part_of_the_project(tier: Sandbox, run: Callable[..., Ending]) -> None:
    search = (
        "import os\nfor place, folders, files in os.walk('/'):\n"
        "    folders[:] = [f for f in folders if f != 'site-packages' and (place, f) != ('/', 'proc')]\n"
        "    for file in files:\n"
        "        if file in ('judge.py', 'gradebook.db', 'nbgrader_config.py', 'open_sandbox.py', 'records.py'):\n"
        "            print(os.path.join(place, file))\n"
    )

    assert run(tier, search, limits=LARGE) == Ending("exited", 0, "")


def test_a_masked_package_is_gone(library: Path, tier: Sandbox, run: Callable[..., Ending]) -> None:
    shown = run(tier, IMPORT.format("course_lib.models") + "\n" + LIST_COURSE)
    masked = run(tier, IMPORT.format("course_lib.models") + "\n" + LIST_COURSE, masked=("course_lib.models",))

    assert "No module" not in shown.output
    assert "models/layer.py" in shown.output
    assert "No module named 'course_lib.models'" in masked.output
    assert "models/" not in masked.output
    assert "fusion/secret.py" in masked.output


def test_a_masked_package_of_others_is_empty(tier: Sandbox, run: Callable[..., Ending]) -> None:
    program = (
        "import importlib.util\n"
        "place = importlib.util.find_spec('torch').submodule_search_locations[0] + '/_dynamo/__init__.py'\n"
        "try:\n    print(open(place).readable())\nexcept OSError:\n    print('absent')\n"
    )

    shown, masked = (run(tier, program, masked=names) for names in ((), ("torch._dynamo",)))

    assert (shown.output, masked.output) == ("True\n", "absent\n")


def test_a_masked_module_of_others_is_empty(tier: Sandbox, run: Callable[..., Ending]) -> None:
    program = (
        "import glob, importlib.util\n"
        "place = importlib.util.find_spec('torch').submodule_search_locations[0] + '/fx/experimental/'\n"
        "for name in ('const_fold.py', '__pycache__/const_fold.*.pyc'):\n"
        "    for file in glob.glob(place + name):\n"
        "        print(b'subgraph' in open(file, 'rb').read())\n"
    )
    # so that there is byte code, whoever installed the package
    importlib.import_module("torch.fx.experimental.const_fold")

    shown, masked = (run(tier, program, masked=names) for names in ((), ("torch.fx.experimental.const_fold",)))

    assert set(shown.output.split()) == {"True"}
    mounts = tier.level <= Level.ISOLATED
    assert set(masked.output.split()) == {"False" if mounts else "True"}
    assert mounts or any("not enforced" in note for note in tier.notes)


def test_masking_a_module_hides_its_byte_code_too(library: Path) -> None:
    targets = {target for _, target in course(["course_lib.fusion.secret"])}

    assert "course_lib/fusion/__init__.py" in targets
    assert "course_lib/models" in targets  # whole: nothing in it is hidden
    assert not any("secret" in target or "__pycache__" in target for target in targets)


@pytest.mark.parametrize(
    "name", ["course_lib", "course_lib.nothing", "torch.nothing", "autograder.worker", "course_lib..x"]
)
def test_masking_an_unknown_name_is_refused(name: str, library: Path) -> None:
    with pytest.raises(SandboxError, match="cannot be masked"):
        course([name])


def test_level_5_masks_as_well(library: Path, run: Callable[..., Ending]) -> None:
    plain = open_sandbox(5, trust=True)
    # Room for torch, so that a worker that found the real library says where, instead of running out of memory.
    program = (
        IMPORT.format("course_lib.models") + "\nimport course_lib, os; print(os.path.realpath(course_lib.__path__[0]))"
    )

    shown, masked = (run(plain, program, limits=LARGE, masked=names) for names in ((), ("course_lib.models",)))

    assert shown == Ending("exited", 0, f"{library}\n")
    assert masked.output.startswith("No module named 'course_lib.models'\n")


def test_a_checkout_below_a_bound_folder_is_covered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "PACKAGE", Path("/usr/lib/checkout/autograder"))

    assert Cover("/usr/lib/checkout") in file_system()


def test_a_checkout_elsewhere_needs_no_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "PACKAGE", Path("/srv/checkout/autograder"))

    assert not any(isinstance(mount, Cover) and "checkout" in mount.target for mount in file_system())


def test_installed_copies_of_our_packages_are_covered(
    public: Path, monkeypatch: pytest.MonkeyPatch, tier: Sandbox, run: Callable[..., Ending]
) -> None:
    installed = public / "site-packages"
    (installed / "autograder" / "host").mkdir(parents=True)
    (installed / "autograder" / "host" / "judge.py").write_text("the judge")
    (installed / "other.py").write_text("another's")
    monkeypatch.setattr(sys, "path", [*sys.path, str(installed)])
    monkeypatch.setattr(view, "ETC_FILES", (*view.ETC_FILES, str(installed)))  # bound, as a prefix would be
    find = (
        f"import os; os.chdir({str(installed)!r}); print(sorted(os.listdir()), open('other.py').read())\n"
        "try: print(open('autograder/host/judge.py').read())\n"
        "except OSError: print('nothing')"
    )

    assert run(tier, find) == Ending("exited", 0, "['autograder', 'other.py'] another's\nnothing\n")


@pytest.mark.parametrize("tier", [name for name, level in OWN_TIERS.items() if level <= 2], indirect=True)
def test_bound_folders_below_the_temporary_folder_are_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tier: Sandbox, run: Callable[..., Ending]
) -> None:
    shown = tmp_path / "library"
    shown.mkdir()
    (shown / "module.py").write_text("content")
    shown.chmod(0o777)  # so that only the view can refuse; levels 3 and 4 mount nothing
    monkeypatch.setattr(view, "ETC_FILES", (*view.ETC_FILES, str(shown)))
    program = (
        f"import tempfile; print(open('{shown}/module.py').read())\n"
        f"for place in ('{shown}', '{tmp_path}', '{Path(*tmp_path.parts[:3])}'):\n"
        "    try: open(place + '/written', 'w'); print('written')\n"
        "    except OSError: print('closed')\n"
        "with tempfile.TemporaryFile() as own: print(own.write(b'own'))"
    )

    assert run(tier, program).output.split() == ["content", "closed", "closed", "closed", "3"]


def test_the_folder_of_the_exchange_is_not_bound() -> None:
    targets = [mount.target for mount in file_system() if isinstance(mount, Bind)]

    assert not any(Path("/usr/local/share/nbgrader/exchange").is_relative_to(target) for target in targets)
    assert not any(Path(home).is_relative_to(target) for target in targets for home in ("/home/any", "/root", "/srv"))


def test_parents_are_made_once_and_never_inside_a_bind() -> None:
    mounts = [
        Bind("/a/b", "/a/b"),
        Bind("/x", "/a/b/c/d"),
        Cover("/a/b/e"),
        Bind("/y", "/a/b/e/f/g"),
        Link("z", "/a/l"),
    ]

    assert [parents for _, parents in with_parents(mounts)] == [["/a"], [], [], ["/a/b/e/f"], []]


@pytest.mark.parametrize("name", some(list(OWN_TIERS), 1, name="tiers that import torch"))
def test_torch_works_inside(name: str, run: Callable[..., Ending]) -> None:
    ending = run(by_name(name), "import torch; print((torch.ones(3) @ torch.ones(3)).item())", limits=LARGE)

    assert ending == Ending("exited", 0, "3.0\n")


@pytest.mark.parametrize("name", some(list(OWN_TIERS), 2, name="tiers that compile"))
def test_a_compiler_works_inside_and_its_library_loads(name: str, run: Callable[..., Ending]) -> None:
    tier = by_name(name)
    program = (
        "import ctypes, subprocess, sysconfig\n"
        "code = b'#include <Python.h>\\nint main() { return 7; }'\n"
        "include = '-I' + sysconfig.get_path('include')\n"
        "subprocess.run(['c++', '-x', 'c++', '-', '-fsyntax-only', include], input=code, check=True)\n"
        "library = b'extern \"C\" int seven() { return 7; }'\n"
        "subprocess.run(['c++', '-shared', '-fPIC', '-x', 'c++', '-', '-o', 'a.so'], input=library, check=True)\n"
        "print(ctypes.CDLL('./a.so').seven(), flush=True)\n"
        "subprocess.run(['c++', '-x', 'c++', '-', '-o', 'a.out'], input=b'int main() { return 8; }', check=True)\n"
        "print(subprocess.run(['./a.out']).returncode)"
    )

    output = run(tier, program, limits=LARGE).output

    assert output.startswith("7\n")
    if tier.level != 4:
        assert output == "7\n8\n"
    else:  # no file can be made executable: the same right would reach files of the host
        assert "Permission denied: './a.out'" in output


def test_child_processes_and_queues_of_multiprocessing_work_where_there_are_mounts(
    tier: Sandbox, run: Callable[..., Ending]
) -> None:
    program = (
        "import multiprocessing as mp\ncontext = mp.get_context('fork')\nqueue = context.Queue()\n"
        "child = context.Process(target=queue.put, args=(41 + 1,)); child.start()\nprint(queue.get()); child.join()"
    )

    ending = run(tier, program, limits=LIMITS)

    if tier.level < 3:
        assert ending == Ending("exited", 0, "42\n")
    else:  # the only folder for shared memory belongs to everybody
        assert "PermissionError" in ending.output
