"""Hidden checks and controls of lesson 06: schedules written beside the model."""
