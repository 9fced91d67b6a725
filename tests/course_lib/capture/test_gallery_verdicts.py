"""What the gallery says about each mode is what happens, tried live."""

from __future__ import annotations

import pytest

from course_lib.capture import compare_modes
from course_lib.capture.capturing import MODES
from course_lib.models.gallery import GALLERY


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_tells_what_each_mode_makes_of_the_program(name):
    entry = GALLERY[name]
    comparison = compare_modes(
        entry.build(), entry.example_inputs(), entry.probe_inputs(), switch_training=entry.switch_training
    )
    assert comparison.verdicts == {mode: entry.verdict(mode) for mode in MODES}, comparison
    for result in comparison.results:
        assert result.why
        assert "\n" not in result.why
        assert (result.captured is None) == (result.verdict == "refused")
