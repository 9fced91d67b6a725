"""A kind has one name on both sides."""

import importlib

from autograder.host.exercise import Kind
from autograder.host.kinds import table as host
from autograder.worker.kinds import table as worker


def test_both_sides_have_the_same_kinds_each_in_a_file_of_its_name():
    assert {str(kind) for kind in host.KINDS} == set(worker.KINDS) == {str(kind) for kind in Kind}
    for kind in Kind:
        assert kind.name == kind.upper()
        for side in ("worker.kinds", "host.kinds"):
            importlib.import_module(f"autograder.{side}.{kind}")


def test_a_kinds_class_and_its_function_in_the_worker_have_its_name():
    for kind in Kind:
        assert type(host.KINDS[kind](None, None)).__name__ == f"{kind.title()}Answer"
        assert worker.KINDS[kind].__name__ == f"{kind}_answer"
