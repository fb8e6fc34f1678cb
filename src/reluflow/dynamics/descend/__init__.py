"""Training in steps."""
