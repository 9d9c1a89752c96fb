"""What is asked: the options of `tacit.compile`, tables that rows bring, and questions about a second world."""
