"""Write a disputed case as Python that can be pasted into the notebook: what was asked, what came back, what should.

An answer chooses texts in its replies. They are written as literals, and messages as comments, so none of them becomes
code, and none reaches a terminal with its control characters.
"""

import base64
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from autograder.classroom.disputes.heard_grading import Heard, close
from autograder.host.kinds import analysis_programs
from autograder.host.kinds.differences import same
from autograder.host.report.safe_text import printable
from autograder.host.shared_inputs import to_torch
from autograder.protocol import ProtocolError, RawTensor, Result
from autograder.protocol.requests.answers import Analyse, Ask, AskEach, AskMember, CallFunction, Transform

# Source texts of ours may hold other cases or answers, and a number for random values belongs to no case.
LEFT_OUT = {"text", "seed", "draws"}
MOST_BYTES = 1 << 18  # of all tensors of one request; more is not for pasting
MOST_CHARACTERS = 200_000  # of one value
WIDTH = 110
HELPER = '''\
import base64
import torch

def tensor(text, dtype, shape, strides):
    """Return the tensor whose bytes are written in base64."""
    data = bytearray(base64.b64decode(text))
    return torch.frombuffer(data, dtype=dtype).as_strided(shape, strides) if data else torch.empty(shape, dtype=dtype)
'''


def comment(text: str) -> str:
    """Return a text, which may be a student's, as lines of comment.

    >>> comment("wrong\\nimport os")
    '# wrong\\n# import os'
    """
    return "\n".join(f"# {line}".rstrip() for line in printable(text).split("\n"))


def case_text(mine: Heard, right: Heard | None, entry_point: str) -> str:
    """Return one request as Python, with the reply to it and the reference's."""
    place = _first_difference(mine, right)
    lines = [*_asked(mine, entry_point, place)]
    if mine.reply is None:
        lines.append(comment("got: no reply; the sentence above says why"))
    else:
        lines += _reply("got", mine.reply, place)
    if right is None or right.reply is None:
        lines.append(comment("expected: the reference solution was not asked exactly this; see the sentence above"))
    elif mine.asks_the_same(right):
        lines += [*_reply("expected", right.reply, place), *_distances(mine.reply, right.reply)]
    else:
        lines.append("# the reference was asked this with other values of the same shapes")
        lines += _reply("expected", right.reply, place)
    text = "\n".join(lines) + "\n"
    return f"{HELPER}\n{text}" if "tensor(" in text else text


def _first_difference(mine: Heard, right: Heard | None) -> int | None:
    """Return which of several questions in one request is shown: the first on which both differ."""
    if not isinstance(mine.request, AskEach):
        return None
    count = len(mine.request.questions)
    found, expected = _values(mine, count), _values(right, count)
    pairs = zip(found, expected, strict=False)
    return next((i for i, pair in enumerate(pairs) if not same(*pair)), 0)


def _values(heard: Heard | None, count: int) -> list[Any]:
    value = heard.reply.body.value if heard is not None and heard.reply is not None else None
    return value if isinstance(value, list) and len(value) == count else []


def _asked(heard: Heard, entry_point: str, place: int | None) -> Iterator[str]:
    """Yield the lines that make what was asked, and the call."""
    request = heard.request
    match request:
        case Ask(question, keys):
            yield from (f"question = {_literal(question)}", f"# {entry_point}(question)")
            if keys:
                yield f"# of a dict, only these entries are read here: {', '.join(keys)}"
        case AskEach(questions):
            yield from (f"question = {_literal(questions[place or 0])}", f"# {entry_point}(question)")
        case AskMember(member, question):
            yield from (f"question = {_literal(question)}", f"# {entry_point}()[{member!r}](question)")
        case Analyse(_, make, arguments):
            yield f"from {analysis_programs.__name__} import {make}\n"
            yield from (f"given = {make}(**{_literal(dict(arguments))})", f"# {entry_point}(*given)")
        case Transform(graph, paths):
            yield "from course_lib.graph import from_data\n"
            yield from _tensors("tensors", heard.tensors)
            of_paths = f"dict(zip({list(paths)}, tensors))" if paths else "{}"
            yield f"graph = from_data({_literal(graph)}, {of_paths})"
            yield f"# {entry_point}(graph)"
        case CallFunction(function, call):
            yield from _tensors("tensors", heard.tensors)
            yield f"args = [{', '.join(map(_argument, call.arguments.args))}]"
            named = (f"{name!r}: {_argument(each)}" for name, each in call.arguments.kwargs.items())
            yield f"kwargs = {{{', '.join(named)}}}"
            yield f"# {function or entry_point}(*args, **kwargs)"
            if call.cotangents:
                yield f"# then backward by tensors {list(call.wrt)}; gradients of outputs: {list(call.cotangents)}"
        case _:
            who = entry_point if heard.of_answer else f"what {entry_point} gave, in a worker without the answer"
            yield comment(f"{type(request).__name__} of {who}; {{'tensor': i}} is tensors[i]")
            yield f"request = {_literal(_plain(request))}"
            yield from _tensors("tensors", heard.tensors)


def _argument(value: Any) -> str:
    is_tensor = isinstance(value, dict) and value.keys() == {"tensor"}
    return f"tensors[{value['tensor']}]" if is_tensor else repr(value)


def _reply(name: str, reply: Result[Any], place: int | None) -> Iterator[str]:
    body = _plain(reply.body)
    if isinstance(body, dict) and body.keys() == {"value"}:
        body = body["value"]
    if place is not None and isinstance(body, list) and place < len(body):
        body = body[place]
    yield f"{name} = {_literal(body)}"
    yield from _tensors(f"{name}_tensors", reply.tensors)


def _distances(mine: Result[Any] | None, right: Result[Any]) -> Iterator[str]:
    """Yield a comment on each tensor of a reply that is far from the reference's."""
    for number, (raw, raw_right) in enumerate(zip(mine.tensors if mine else (), right.tensors, strict=False)):
        if close(raw, raw_right):
            continue
        try:
            found, expected = to_torch(raw), to_torch(raw_right)
        except ProtocolError:
            continue
        if found.shape != expected.shape:
            yield f"# tensor {number}: shape {tuple(found.shape)}; expected {tuple(expected.shape)}"
        elif found.numel():
            distance = (found.double() - expected.double()).abs().nan_to_num(nan=torch.inf)
            worst = int(distance.argmax())
            place = tuple(int(i) for i in torch.unravel_index(torch.tensor(worst), distance.shape))
            values = f"{found.flatten()[worst].item():.6g}; expected {expected.flatten()[worst].item():.6g}"
            yield f"# tensor {number}, where it is farthest, at {place}: {values}"


def _plain(value: Any) -> Any:
    """Return plain data for a dataclass of the protocol, without the fields that say more than the case."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value) if f.name not in LEFT_OUT}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value


def _literal(value: Any) -> str:
    """Return plain data as a literal with a line for each entry, or for each node of a graph."""
    if isinstance(value, dict) and isinstance(value.get("graph"), dict):
        value = value["graph"]  # what else came with it are the names of tensors
    if isinstance(value, Mapping) and isinstance(value.get("nodes"), list):
        rest = {name: each for name, each in value.items() if name != "nodes"}
        text = f"{{'nodes': [\n{_lines(value['nodes'])}], **{rest!r}}}"
    elif isinstance(value, list) and len(repr(value)) > WIDTH:
        text = f"[\n{_lines(value)}]"
    else:
        text = repr(value)
    return text if len(text) <= MOST_CHARACTERS else repr(f"too large to paste: {len(text):,} characters")


def _lines(items: list[Any]) -> str:
    return "".join(f"    {item!r},\n" for item in items)


def _tensors(name: str, tensors: Sequence[RawTensor]) -> Iterator[str]:
    """Yield a line that makes a list of tensors, bit for bit; nothing for none."""
    if sum(len(raw.data) for raw in tensors) > MOST_BYTES:
        forms = ", ".join(f"{raw.dtype} {list(raw.shape)}" for raw in tensors)
        yield f"{name} = []  # too large to paste: {forms}"
    elif tensors:
        yield f"{name} = [{', '.join(map(_tensor, tensors))}]"


def _tensor(raw: RawTensor) -> str:
    text = base64.b64encode(bytes(raw.data)).decode()
    return f"tensor({text!r}, torch.{raw.dtype}, {tuple(raw.shape)}, {tuple(raw.strides)})"
