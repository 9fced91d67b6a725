"""The requests to a worker and their replies: those that load something, those that it serves, those of the clock."""
