"""The early phase, exactly."""
