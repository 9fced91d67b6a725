"""The door for source text: one thread at a time builds a tree, and a disturbed parser is asked again."""

import ast
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from autograder.host import source_text
from autograder.host.source_text import TRIES, parsed, tree_of

MISMATCH = "AST constructor recursion depth mismatch (before=45, after=41)"


class Parser:
    """Stand for `ast.parse`: count the threads inside it, and fail the first few times."""

    def __init__(self, failures: int = 0) -> None:
        self.inside, self.most, self.failures = 0, 0, failures
        self._lock, self._parse = threading.Lock(), ast.parse

    def __call__(self, text: str) -> ast.Module:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        time.sleep(0.002)
        with self._lock:
            self.inside -= 1
            self.failures -= 1
        if self.failures >= 0:
            raise SystemError(MISMATCH)
        return self._parse(text)


def test_one_thread_at_a_time_builds_a_tree(monkeypatch):
    parser = Parser()
    monkeypatch.setattr(source_text.ast, "parse", parser)
    with ThreadPoolExecutor(4) as pool:
        trees = list(pool.map(parsed, ["x = 1"] * 12))

    assert len(trees) == 12
    assert parser.most == 1


def test_a_disturbed_parser_is_asked_again(monkeypatch):
    monkeypatch.setattr(source_text.ast, "parse", Parser(failures=TRIES - 1))

    assert ast.unparse(tree_of("x = 1")) == "x = 1"


def test_a_parser_that_stays_disturbed_is_no_fault_of_the_text(monkeypatch):
    monkeypatch.setattr(source_text.ast, "parse", Parser(failures=TRIES))

    with pytest.raises(SystemError, match="depth mismatch"):
        parsed("x = 1")


# Evaluated where no other thread parses: at import, by a command that grades nothing, or in a process of its own.
ELSEWHERE = ("host/source_text.py", "host/grading.py", "exercises/quality/", "worker/", "exercises/hidden/answers/")


def test_all_that_grades_parses_by_this_door():
    package = Path(source_text.__file__).parents[1]
    files = {str(path.relative_to(package)): path for path in package.rglob("*.py")}
    calls = [
        name
        for name, path in files.items()
        if not name.startswith(ELSEWHERE)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "ast.parse"
    ]
    assert calls == []
