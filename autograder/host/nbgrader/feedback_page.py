"""Turn a graded notebook into a page of feedback as nbgrader does, with the page's templates compiled once.

nbgrader makes an exporter for every hand-in, and each would compile all templates of a page anew.
"""

from __future__ import annotations

from types import CodeType

from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from nbconvert.exporters import HTMLExporter


class CompiledTemplates(BytecodeCache):
    """The templates that this process has compiled, by name; a template that has changed is compiled again.

    >>> env = Environment(loader=loader, bytecode_cache=CompiledTemplates())
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, CodeType]] = {}  # by key: the checksum of the source, and its code

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give jinja2 the code of a template; it compiles where it is given none."""
        checksum, code = self._known.get(bucket.key, ("", None))
        if checksum == bucket.checksum:
            bucket.code = code

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was just compiled."""
        if bucket.code is not None:
            self._known[bucket.key] = (bucket.checksum, bucket.code)


_COMPILED = CompiledTemplates()


class FeedbackExporter(HTMLExporter):
    """nbconvert's exporter of pages, whose templates are compiled by the first one in a process."""

    def _create_environment(self) -> Environment:
        environment: Environment = super()._create_environment()
        environment.bytecode_cache = _COMPILED
        return environment
