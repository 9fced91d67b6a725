"""The tree of errors in the docstring is the tree in the code."""

import inspect

from course_lib import errors


def test_every_error_is_a_course_error_named_in_the_docstring() -> None:
    tree = errors.__doc__ or ""
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    assert len(classes) > 1
    for cls in classes:
        assert issubclass(cls, errors.CourseError)
        assert cls.__name__ in tree
