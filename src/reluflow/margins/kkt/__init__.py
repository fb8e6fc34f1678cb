"""Whether a network is a KKT direction of the margin problem."""
