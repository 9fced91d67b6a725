"""Hidden checks and controls of lesson 14: shipping programs."""
