"""What `replace` needs besides a graph."""

from collections.abc import Callable, Mapping
from typing import Any

from torch import nn

from course_lib.schedule.fused import name_of


class FunctionModule(nn.Module):
    """A function in the place of a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        return self.function(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FunctionModule":
        return FunctionModule(self.function).train(self.training)  # an operator of torch.library refuses to be copied

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return name_of(self.function)


def describe_state_change(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    """Return, in words, how the names in a state dict differ."""
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if not gone and not new:
        return "names in the state dict are as before"
    return f"the state dict lost {', '.join(gone) or 'nothing'} and gained {', '.join(new) or 'nothing'}"
