"""Hidden checks and controls of lesson 02: time, profile and count a program."""
