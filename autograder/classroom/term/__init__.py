"""What a course sets for a whole term: due dates, lateness, which hand-in counts, and its texts."""
