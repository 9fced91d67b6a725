"""Hidden checks and controls of lesson 14: programs that leave Python."""
