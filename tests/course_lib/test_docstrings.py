"""The examples in docstrings give the results that stand under them, and the library names what it has."""

import doctest
import importlib
import pkgutil
import re

import pytest
import torch

import course_lib

MODULES = sorted(info.name for info in pkgutil.walk_packages(course_lib.__path__, "course_lib."))


@pytest.mark.parametrize("name", MODULES)
def test_examples_are_true(name: str) -> None:
    module = importlib.import_module(name)
    assert module.__doc__
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner(verbose=False)
    for attribute, value in vars(module).items():
        text = getattr(value, "__doc__", None)
        if getattr(value, "__module__", None) == name and isinstance(text, str) and ">>>" in text:
            runner.run(parser.get_doctest(text, {**vars(module), "torch": torch}, f"{name}.{attribute}", None, 0))
    assert runner.summarize(verbose=False).failed == 0


def test_the_library_names_each_of_its_packages() -> None:
    packages = {each.name for each in pkgutil.iter_modules(course_lib.__path__) if each.ispkg}
    assert packages
    assert course_lib.__doc__ is not None
    assert packages <= set(re.findall(r"\w+", course_lib.__doc__)), "help(course_lib) is where a user looks first"


def test_the_librarys_docstring_names_what_its_packages_have():
    lines = re.findall(r"^    ([a-z_.]+) {2,}(.*)$", course_lib.__doc__ or "", re.MULTILINE)
    names = {
        (package, name)
        for package, text in lines
        for name in re.findall(r"(?:^|(?<=, )|(?<=; ))(\w+)(?=[(,:])", re.sub(r"\([^()]*\)", "()", text))
    }
    assert {("doctor", "doctor"), ("timing", "compare"), ("launches", "warm_up")} < names
    assert [each for each in names if not hasattr(importlib.import_module(f"course_lib.{each[0]}"), each[1])] == []
