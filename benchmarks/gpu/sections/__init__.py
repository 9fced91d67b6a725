"""The sections of the GPU check, one a file."""
