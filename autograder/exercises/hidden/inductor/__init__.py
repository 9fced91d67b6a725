"""Hidden checks and controls of lesson 09: loops written from a graph."""
