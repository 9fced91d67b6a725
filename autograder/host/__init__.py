"""TRUSTED: gives points to an answer; never imports or unpickles data from a student, or opens its files by name."""
