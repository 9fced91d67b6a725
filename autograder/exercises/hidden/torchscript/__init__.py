"""Hidden checks and controls of lesson 03: trace and script."""
