"""What runs inside the sandbox: its text crosses on a command line.

Standard library only, and nothing secret in it: student code can read it all.
"""
