"""Hidden checks and controls of lesson 07: what torch.compile captures."""
