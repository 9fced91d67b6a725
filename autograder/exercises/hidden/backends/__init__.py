"""Hidden checks and controls of lesson 10: a backend of your own."""
