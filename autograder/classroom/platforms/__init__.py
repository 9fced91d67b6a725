"""What learning platforms give and take: archives of hand-ins, rosters, worksheets, times and files of marks."""
