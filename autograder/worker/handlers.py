"""What a loaded answer serves: for each class of request the function that makes its reply."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.protocol import RawTensor, Request, Result

Tensors = Sequence[RawTensor]
Handlers = Mapping[type[Request[Any]], Callable[[Any, Tensors], Result[Any]]]
"""Each function takes a request of the class under which it stands, and the tensors that came with it."""
