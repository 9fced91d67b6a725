"""Programs that run inside the sandbox; their text is passed on a command line.

They use the standard library only, and contain no secrets, because student code can read them.
"""
