"""Ready-made checks, which exercises build from a few lines."""
