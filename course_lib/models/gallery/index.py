"""Collect programs that some capture mode refuses or captures wrongly, one for each reason.

Each is an ordinary PyTorch program that is correct in eager mode. Captured from its example inputs, it is refused in
some modes, and in others its graph is silently wrong on the probe inputs. Each program states the verdict on each mode
as data, for torch 2.13.
"""

from collections.abc import Mapping

from course_lib.models.gallery.control_flow import CONTROL, VALUES
from course_lib.models.gallery.entry import GalleryEntry
from course_lib.models.gallery.python_features import PYTHON
from course_lib.models.gallery.state import STATE

GALLERY: Mapping[str, GalleryEntry] = {entry.name: entry for entry in (*CONTROL, *VALUES, *STATE, *PYTHON)}
