"""Code generated for one tape: LLVM IR as text, compiled for this processor or for a GPU."""
