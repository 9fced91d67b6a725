"""Hidden checks and controls of lesson 05: change a graph and fuse operators."""
