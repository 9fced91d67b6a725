"""Exercises of lesson 07: what torch.compile captures."""
