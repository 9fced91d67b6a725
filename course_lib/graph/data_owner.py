"""From data to the modules and tensors of a graph, trusting nothing: see `course_lib.graph.data` for the format."""

from collections.abc import Mapping

import torch

from course_lib.graph.data_modules import read_module, tensors_of
from course_lib.graph.data_names import check_path, refuse, shown


class Owner:
    """The module that owns all modules and tensors of a graph, built from checked entries."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.root = torch.nn.Module()
        self._built: dict[str, torch.Tensor] = {}

    def add_modules(self, entries: Mapping[str, object]) -> dict[str, torch.Tensor]:
        """Build the modules and return, by path, the tensors (on the meta device) that they expect."""
        expected: dict[str, torch.Tensor] = {}
        for path, entry in entries.items():
            module = read_module(entry, f"Module {path!r}")
            container, name = self._place(path, f"Module {path!r}")
            container.add_module(name, module)
            expected.update({f"{path}.{name}": tensor for name, tensor in tensors_of(module).items()})
        return expected

    def add_tensor(self, path: str, tensor: torch.Tensor, *, parameter: bool, expected: torch.Tensor | None) -> None:
        """Register one parameter or buffer, in the module that expects it or in a plain container."""
        where = f"Tensor {path!r}"
        if expected is None:
            container, name = self._place(path, where)
            if parameter:
                container.register_parameter(name, tensor)  # type: ignore[arg-type]
            else:
                container.register_buffer(name, tensor)
            return
        if isinstance(expected, torch.nn.Parameter) != parameter or expected.shape != tensor.shape:
            kind = "parameter" if isinstance(expected, torch.nn.Parameter) else "buffer"
            refuse(where, f"its module expects a {kind} of shape {tuple(expected.shape)}, not {tuple(tensor.shape)}")
        module, _, name = path.rpartition(".")
        setattr(self.root.get_submodule(module), name, tensor)

    def _place(self, path: str, where: str) -> tuple[torch.nn.Module, str]:
        *parents, name = path.split(".")
        container = self.root
        for part in parents:
            if part not in container._modules:
                self._check_free(container, part, where)
                container.add_module(part, torch.nn.Module())
            container = container.get_submodule(part)
            if type(container) is not torch.nn.Module:
                refuse(where, "its path leads through another module, which owns only its own tensors")
        self._check_free(container, name, where)
        return container, name

    @staticmethod
    def _check_free(container: torch.nn.Module, name: str, where: str) -> None:
        if hasattr(container, name):
            refuse(where, "something else is at its path already")


def read_tensors(entries: Mapping[str, object], tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return a parameter or plain tensor for each entry; tied entries give the same object."""
    built: dict[str, torch.Tensor] = {}
    for path, entry in entries.items():
        where = f"Tensor {path!r}"
        check_path(path, where)
        if type(entry) is not dict or not {"parameter"} <= entry.keys() <= {"parameter", "requires_grad", "same_as"}:
            refuse(where, 'a tensor is written as {"parameter": true or false}')
        parameter, requires_grad = entry["parameter"], entry.get("requires_grad", True)
        if type(parameter) is not bool or type(requires_grad) is not bool:
            refuse(where, "parameter and requires_grad are true or false")
        if "same_as" in entry:
            built[path] = _tied(entry["same_as"], built, parameter=parameter, where=where)
        else:
            built[path] = _own(tensors.get(path), parameter=parameter, requires_grad=requires_grad, where=where)
    given = {path for path in entries if "same_as" not in entries[path]}  # type: ignore[operator]
    if tensors.keys() != given:
        refuse("The tensors", f"{len(tensors)} came with the graph, which lists {len(given)}, or their paths differ")
    return built


def _tied(first: object, built: Mapping[str, torch.Tensor], *, parameter: bool, where: str) -> torch.Tensor:
    if type(first) is not str or first not in built or isinstance(built[first], torch.nn.Parameter) != parameter:
        refuse(where, f"no earlier tensor of its kind is at {shown(first)}, so it cannot be the same")
    return built[first]


def _own(tensor: object, *, parameter: bool, requires_grad: bool, where: str) -> torch.Tensor:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not isinstance(tensor, torch.Tensor):
        refuse(where, "no plain tensor came with the graph for its path")
    if tensor.layout is not torch.strided:
        refuse(where, "it is sparse")
    if parameter and not (tensor.is_floating_point() or tensor.is_complex()):
        refuse(where, f"a parameter of {tensor.dtype} cannot have a gradient; make it a buffer")
    return torch.nn.Parameter(tensor.detach(), requires_grad=requires_grad) if parameter else tensor.detach()
