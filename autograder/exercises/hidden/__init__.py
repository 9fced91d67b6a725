"""The hidden part of each exercise, in a file of the same name. Students do not install this package."""
