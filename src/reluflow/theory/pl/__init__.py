"""Phuong & Lampert: orthogonally separable data."""
