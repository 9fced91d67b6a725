"""Hidden checks and controls of lesson 08: graphs without writes, and their backward."""
