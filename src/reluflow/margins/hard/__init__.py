"""The widest linear separator, to the last digit, with exact certificates."""
