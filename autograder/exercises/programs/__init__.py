"""Programs and models that exercises ask about; some are sent to the worker as text."""
