"""One file a problem: its cases, what a right answer is, what is promised. `benchmarks.measure` says what is in it."""
