"""Hidden checks and controls of lesson 16: training with Lightning."""
