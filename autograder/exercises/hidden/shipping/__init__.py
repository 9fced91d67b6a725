"""Hidden checks and controls of lesson 14: exported programs."""
