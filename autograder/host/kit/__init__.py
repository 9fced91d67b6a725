"""What exercises are made of: checks on fresh inputs, answers to call, and the error rule."""
