"""Where the direction of the flow goes, with evidence."""
