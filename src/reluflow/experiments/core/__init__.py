"""What every experiment needs: its contract, the registry, running, storing, pages."""
