"""Hidden checks and controls of lesson 13: attention, streamed, in tiles, and with masks that save work."""
