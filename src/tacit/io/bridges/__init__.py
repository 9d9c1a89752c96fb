"""Other libraries: pgmpy, pyAgrum, ONNX."""
