"""A process that has imported torch and forks workers."""
