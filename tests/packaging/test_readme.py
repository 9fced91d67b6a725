"""What the README tells a newcomer to type is there; `test_what_the_texts_add.py` types how to add an exercise."""

import re

from scripts import draw_picture
from tests.architecture.source_tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def test_every_target_that_the_readme_names_exists():
    named = set(re.findall(r"`?make ([a-z-]+)(?:`|  )", README))

    assert {"demo", "test"} <= named
    assert [target for target in named if f"\n{target}:" not in MAKEFILE] == []


def test_every_link_and_picture_exists():
    assert [path for path in re.findall(r"\]\(([^)#:]+)\)", README) if not (ROOT / path).exists()] == []


def test_the_picture_is_what_the_script_draws():
    assert draw_picture.picture() == (ROOT / "docs" / "picture.svg").read_text(encoding="utf-8")
