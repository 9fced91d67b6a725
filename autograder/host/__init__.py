"""TRUSTED: decides what an answer is worth, and never imports, unpickles or opens by name what a student made."""
