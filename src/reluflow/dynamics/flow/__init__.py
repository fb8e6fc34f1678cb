"""The gradient flow, through every kink."""
