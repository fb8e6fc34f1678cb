"""Min, Mallada & Vidal: early alignment."""
