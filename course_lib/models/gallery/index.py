"""Programs that defeat a way of capturing them, one per reason.

Each is an ordinary PyTorch program that is right when it runs eagerly. Captured from its example inputs, it is refused
in some modes, and in others gives a graph that is silently wrong on the probe inputs. What happens in which mode is
stated with each program as data, seen with torch 2.13.
"""

from collections.abc import Mapping

from course_lib.models.gallery.control_flow import CONTROL, VALUES
from course_lib.models.gallery.entry import GalleryEntry
from course_lib.models.gallery.python_features import PYTHON
from course_lib.models.gallery.state import STATE

GALLERY: Mapping[str, GalleryEntry] = {entry.name: entry for entry in (*CONTROL, *VALUES, *STATE, *PYTHON)}
