"""The small language of answers to 16.2, whose text the host reads before it runs."""
