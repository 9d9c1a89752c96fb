"""Message passing between clusters of variables: sparse tables, join graphs, and kernels."""
