"""The patterns of `find`: plain PyTorch functions, in which a regular expression may stand for modules.

Operators are compared as the fusion passes compare them: by what they compute, whatever the spelling, and either way
round for what commutes. Functions that the table of operators does not list match only themselves, with the same
arguments.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from inspect import Parameter, Signature

from torch import fx

from course_lib.errors import ScheduleError
from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.matching import Match, Pattern
from course_lib.fusion.operators import Operator


def call_module(regex: str, *inputs: object) -> fx.Proxy:
    """Stand, in a pattern, for the call of a module whose name fits `regex`, with these inputs.

    The expression has to fit the module's whole path in the traced graph, or the last name of the path:
    `call_module("dropout.*", x)` finds `dropout`, `dropout_1` and `output.dropout`. Raises `ScheduleError` outside
    of a pattern.
    """
    proxy = next((value for value in inputs if isinstance(value, fx.Proxy)), None)
    if proxy is None or not isinstance(regex, str):
        raise ScheduleError(
            f"call_module got {regex!r} and {len(inputs)} inputs outside of a pattern; it expects an expression and "
            "values of a pattern, so use it in a function that is given to find."
        )
    try:
        re.compile(regex)
    except re.error as error:
        raise ScheduleError(f"call_module got {regex!r}, which is no regular expression: {error}.") from error
    return proxy.tracer.create_proxy("call_function", call_module, (regex, *inputs), {})


class ModulePattern(Pattern):
    """A pattern of the fusion passes that also knows modules by name, and functions that no table lists."""

    def __init__(self, function: Callable[..., object]) -> None:
        name = getattr(function, "__qualname__", repr(function))
        try:
            self._graph = fx.Tracer().trace(function)
        except ScheduleError:
            raise
        except Exception as error:  # a pattern can fail in any way while it runs on proxies
            raise ScheduleError(
                f"find got the pattern {name}, which cannot be traced ({type(error).__name__}: {error}); "
                "write it with operators only, without branches on values."
            ) from error
        (result,) = self._graph.output_node().args
        if not isinstance(result, fx.Node) or not result.op.startswith("call"):
            raise ScheduleError(
                f"find got the pattern {name}, which returns {result!r}; it expects the result of one operator."
            )
        self._calls = {node: read(node) for node in self._graph.nodes if node.op.startswith("call")}
        self._result = result
        self.parameters = tuple(str(node.target) for node in self._graph.find_nodes(op="placeholder"))
        self.name = name

    def _unify(self, pattern: object, value: object, match: Match) -> Iterator[Match]:
        if not isinstance(pattern, fx.Node) or pattern.op == "placeholder":
            yield from super()._unify(pattern, value, match)
        elif pattern.target is call_module:
            yield from self._unify_module(pattern, value, match)
        else:
            yield from self._unify_call(self._calls[pattern], read(value), match)

    def _unify_module(self, pattern: fx.Node, value: object, match: Match) -> Iterator[Match]:
        regex, *wanted = pattern.args
        if not isinstance(value, fx.Node) or value.op != "call_module":
            return
        path, given = str(value.target), [*value.args, *value.kwargs.values()]
        fits = re.fullmatch(str(regex), path) or re.fullmatch(str(regex), path.rpartition(".")[2])
        call = read(value)
        if fits and call is not None and len(given) == len(wanted):
            yield from self._unify_all(wanted, given, replace(match, calls=(*match.calls, call)))

    def _unify_all(self, wanted: Sequence[object], given: Sequence[object], match: Match) -> Iterator[Match]:
        if not wanted:
            yield match
        elif isinstance(wanted[0], fx.Node):
            for partial in self._unify(wanted[0], given[0], match):
                yield from self._unify_all(wanted[1:], given[1:], partial)
        elif type(wanted[0]) is type(given[0]) and wanted[0] == given[0]:
            yield from self._unify_all(wanted[1:], given[1:], match)


def read(node: object) -> Call | None:
    """Return the call that a node makes: of an operator that the table lists, or of one that equals only itself."""
    if not isinstance(node, fx.Node) or not node.op.startswith("call"):
        return None
    known = read_call(node)
    if known is not None:
        return known
    operator = _unlisted(node.op, node.target, len(node.args), tuple(node.kwargs))
    values = dict(zip(operator.signature.parameters, [*node.args, *node.kwargs.values()], strict=True))
    return Call(node, operator, values)


@functools.lru_cache(maxsize=4096)
def _unlisted(kind: str, target: object, positional: int, keywords: tuple[str, ...]) -> Operator:
    names = [*(f"argument_{number}" for number in range(positional)), *keywords]
    signature = Signature([Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names])
    name = str(getattr(target, "__name__", target))
    function = target if callable(target) else call_module
    return Operator(f"{kind} {name}", signature, function, function)
