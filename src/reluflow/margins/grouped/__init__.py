"""The best margin of groups of neurons with given patterns."""
