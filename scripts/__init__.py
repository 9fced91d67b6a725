"""Scripts that the Makefile runs, and a headless browser."""
