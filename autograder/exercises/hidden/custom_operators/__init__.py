"""Hidden parts of the exercises of lesson 11."""
