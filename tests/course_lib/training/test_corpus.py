"""The text is the same each time, nothing in it is executed, and nothing held out was seen before."""

import sys

import pytest

from course_lib.errors import TrainingError
from course_lib.training import corpus
from course_lib.training.corpus import TELLING_LINE_BYTES, docstrings

MODULES = 40


@pytest.fixture
def library(tmp_path):
    """A folder of modules, each of which would stop the process if it were imported."""
    for number in range(MODULES):
        (tmp_path / f"module_{number}.py").write_text(
            f'"""About number {number}."""\nraise SystemExit\ndef f():\n    """The same everywhere."""\n'
        )
    return tmp_path


def lines(documents):
    found = (line.strip() for each in documents for text in each.docstrings for line in text.splitlines())
    return {line for line in found if len(line) >= TELLING_LINE_BYTES}


def packages(documents):
    return {each.module.split(".")[0].lstrip("_") for each in documents}


def test_the_standard_library_gives_both_sides_and_they_share_nothing():
    before = set(sys.modules)
    found = corpus(max_bytes=200_000)

    assert 100_000 < sum(each.size_bytes for each in found.train) <= 180_000
    assert 10_000 < sum(each.size_bytes for each in found.held_out) <= 20_000
    assert not packages(found.train) & packages(found.held_out)
    assert not lines(found.train) & lines(found.held_out)
    texts = [text for side in (found.train, found.held_out) for each in side for text in each.docstrings]
    assert len(texts) == len(set(texts))
    assert {each.module for each in found.train}.isdisjoint(set(sys.modules) - before)


def test_a_second_reading_gives_the_same_text(library):
    assert corpus(library) == corpus(library)
    assert corpus(library).fingerprint == corpus(library).fingerprint
    assert corpus(library).fingerprint != corpus(library, held_out_share=0.5).fingerprint


def test_the_order_does_not_depend_on_what_else_lies_there(library):
    before = [each.module for each in corpus(library).train]
    (library / "another.py").write_text('"""One more."""')

    assert [each.module for each in corpus(library).train if each.module != "another"] == before


def test_a_docstring_that_stands_in_several_modules_is_kept_once(library):
    found = corpus(library)
    texts = [text for side in (found.train, found.held_out) for each in side for text in each.docstrings]

    assert texts.count("The same everywhere.") == 1
    assert len(texts) == MODULES + 1


def test_a_held_out_docstring_that_shares_a_long_line_with_the_rest_is_left_out(library):
    shared = "This sentence stands in each of the modules, word by word."
    for number in range(MODULES):
        (library / f"module_{number}.py").write_text(
            f'"""Number {number}.\n\n{shared}\n"""\nclass C:\n    """C{number}"""'
        )
    found = corpus(library)

    assert found.held_out
    assert shared in lines(found.train)
    assert shared not in lines(found.held_out)


def test_twins_of_one_module_go_to_one_side(tmp_path):
    for number in range(MODULES):
        for name in (f"mod{number}", f"_mod{number}", f"_pymod{number}"):
            (tmp_path / f"{name}.py").write_text(f'"""What {name} does."""')
    found = corpus(tmp_path, held_out_share=0.5)
    sides = [{each.module.lstrip("_").removeprefix("py") for each in side} for side in (found.train, found.held_out)]

    assert sides[0]
    assert sides[1]
    assert not sides[0] & sides[1]


def test_files_that_are_no_programs_and_folders_of_tests_are_passed_over(library):
    (library / "template.py").write_text("class {{name}}:")
    (library / "latin.py").write_bytes(b'"""caf\xe9"""')
    (library / "test").mkdir()
    (library / "test" / "one.py").write_text('"""Found in a test."""')
    found = corpus(library)

    assert {"template", "latin", "test.one"}.isdisjoint({each.module for each in (*found.train, *found.held_out)})


def test_docstrings_come_in_the_order_of_the_file():
    source = '"""1"""\nclass A:\n    """2"""\n    def f(self):\n        """3"""\nasync def g():\n    """4"""\n'

    assert docstrings(source) == ("1", "2", "3", "4")


@pytest.mark.parametrize("options", [{"max_bytes": 0}, {"held_out_share": 0}, {"held_out_share": 1.0}])
def test_sizes_that_cannot_work_are_refused(library, options):
    with pytest.raises(TrainingError, match="it expects a positive number of bytes and a share between 0 and 1"):
        corpus(library, **options)


def test_a_folder_without_text_is_refused(tmp_path):
    with pytest.raises(TrainingError, match="found text for 0 modules to learn from and 0 to hold out"):
        corpus(tmp_path)
