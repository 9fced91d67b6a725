"""What runs inside the sandbox: its text crosses on a command line, and the host never runs it.

Standard library only, and nothing secret in it: student code can read it all.
"""
