"""The requests to a worker and their replies: loads, requests to a loaded answer, and timed rounds."""
