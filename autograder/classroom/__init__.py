"""The administration of a class: command line, batches, nbgrader, reports, rosters and uploads."""
