"""Other libraries: pgmpy, pyAgrum, y0, ONNX."""
