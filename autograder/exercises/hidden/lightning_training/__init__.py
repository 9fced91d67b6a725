"""Hidden checks and controls of lesson 16: Lightning, compiled, profiled and counted."""
