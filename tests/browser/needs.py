"""What the tests in a browser need."""

import shutil

import pytest

from scripts import browser
from tests import skips

needs_chromium = pytest.mark.skipif(not any(map(shutil.which, browser.NAMES)), reason=f"{skips.BROWSER}: Chromium")
