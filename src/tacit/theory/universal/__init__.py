"""Networks and circuits made from functions and neural networks."""
