"""Hidden checks and controls of lesson 01: a Transformer layer from its parts."""
