"""Rules for problems, a file for each kind of place."""
