"""What exercises are made of: checks on fresh inputs, answers to call, an error rule that one precision lower does
not pass.
"""
