"""A gallery of programs that some capture mode refuses or captures wrongly."""

from course_lib.models.gallery.entry import GalleryEntry
from course_lib.models.gallery.index import GALLERY

__all__ = ["GALLERY", "GalleryEntry"]
