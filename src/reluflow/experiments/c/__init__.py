"""Statements that are in none of the papers."""
