"""Hidden checks and controls of lesson 15: launches, captured and replayed."""
