"""Hidden checks and controls of lesson 04: from a program to a graph with torch.fx."""
