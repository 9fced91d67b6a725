"""How each kind of answer is loaded and called, one kind a file; the same names as in `autograder.host.kinds`."""
