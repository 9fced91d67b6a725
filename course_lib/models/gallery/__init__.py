"""Programs that defeat a way of capturing them, by what in them does so."""

from course_lib.models.gallery.entry import GalleryEntry
from course_lib.models.gallery.index import GALLERY

__all__ = ["GALLERY", "GalleryEntry"]
