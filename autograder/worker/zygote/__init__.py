"""A process that has imported torch and forks workers; `autograder/README.md` describes it."""
