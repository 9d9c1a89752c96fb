"""The papers at work: worked examples, experiments, and a study of what background knowledge buys."""
