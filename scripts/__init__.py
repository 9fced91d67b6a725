"""What stands behind the Makefile, and a browser for pages that nobody looks at."""
