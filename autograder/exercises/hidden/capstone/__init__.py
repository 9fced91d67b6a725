"""Hidden checks and controls of lesson 17: one training step, and a review."""
