"""The paper at work: its worked examples, its experiments, and a study of what background knowledge buys."""
