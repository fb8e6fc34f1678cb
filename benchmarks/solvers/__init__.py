"""One file a solver: a function for every task it can do. `benchmarks.measure` says what is in it."""
