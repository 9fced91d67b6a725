"""A pass, its file, its class and its test have one name, so that each is found by the others."""

from pathlib import Path

import pytest

from course_lib.fusion import PASSES

TESTS = Path(__file__).parent / "passes"


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_has_one_name_in_all_places(name: str) -> None:
    found = PASSES[name]

    assert found.__module__ == f"course_lib.fusion.passes.{name}"
    assert found.__name__ == "".join(word.capitalize() for word in name.split("_"))
    assert (TESTS / f"test_{name}.py").is_file()
