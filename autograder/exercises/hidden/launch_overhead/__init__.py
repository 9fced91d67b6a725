"""Hidden checks and controls of lesson 15: launch overhead and capture."""
