"""The contract between host and worker: each request is a dataclass that names the dataclass of its reply.

On the wire a request is a JSON object with the name of its class under "request" and a key for each field. A reply is
an object with a key for each field; the request determines its class. Both carry tensors beside the body, in the
order in which the fields count them.

    >>> class Capture(Request["WrittenGraph"]): ...
    >>> result = session.call(Capture("loss", "dynamo", ((0,),)), inputs)
    >>> result.body.graph
"""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, TypeVar, cast, get_args, get_origin

from autograder.protocol.decoder import Within, decode
from autograder.protocol.frames import ProtocolError
from autograder.protocol.messages import MAX_TENSORS, Message, RawTensor

R = TypeVar("R")
Json = Any
"""None, bool, int, finite float, str, and lists and dicts (with str keys) of them."""
GraphData = Mapping[str, Any]
"""A graph as `course_lib.graph.to_data` writes it; every reader must check it."""
Count = Annotated[int, Within(0, MAX_TENSORS)]
"""A number of tensors, or the index of one."""
TensorName = Annotated[str, Within(0, 1000)]
"""The name of a tensor or of a file."""


class Request(Generic[R]):
    """A request of the host to a worker; `R` is the dataclass of the reply."""


@dataclass(frozen=True)
class Result(Generic[R]):
    """A reply and its tensors."""

    body: R
    tensors: Sequence[RawTensor] = ()


Tensors = Sequence[RawTensor]
Handlers = Mapping[type[Request[Any]], Callable[[Any, Tensors], Result[Any]]]
"""The request handlers of a worker: for each class of request, the function that makes the reply.

The function takes the request and the tensors of the message.
"""


@dataclass(frozen=True)
class Done:
    """A reply without content: the request was served."""


@dataclass(frozen=True)
class Ready:
    """The worker's first message: it has imported torch and waits."""

    torch: str
    cuda: bool


@dataclass(frozen=True)
class Raised:
    """The reply to a request in which an exception was raised.

    `part` is the name of a cell in angle brackets, `line` its line number from 1, `text` that line; falsy if unknown.
    """

    type: str
    message: str
    part: str
    line: int
    text: str
    said_to_student: bool
    """Whether the message is already a sentence for the student."""


def request_body(request: Request[Any]) -> Mapping[str, object]:
    """Return the body of the message that carries `request`."""
    return {"request": type(request).__name__, **vars(request)}


def read_request(body: Mapping[str, Any], served: Iterable[type[Request[Any]]]) -> Request[Any]:
    """Return the request in a body, one of the classes that are `served`."""
    values = dict(body)
    name = values.pop("request", None)
    for kind in served:
        if kind.__name__ == name:
            return decode(values, kind)
    raise ProtocolError(f"a request {name!r} where {', '.join(kind.__name__ for kind in served) or 'none'} is served")


def read_reply(request: Request[R], message: Message) -> Result[R]:
    """Return the reply to `request`; raises `ProtocolError` for a body of another form."""
    reply: type[R] = _reply_kind(cast("Any", type(request)))
    return Result(decode(message.body, reply), message.tensors)


@functools.cache
def _reply_kind(request: Any) -> Any:
    bases = (base for kind in request.__mro__ for base in vars(kind).get("__orig_bases__", ()))
    (reply,) = (get_args(base)[0] for base in bases if get_origin(base) is Request)
    return reply
