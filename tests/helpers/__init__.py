"""What tests share: second methods that use nothing of the package, and short ways to ask it."""
