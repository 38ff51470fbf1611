"""The main story (README, "Five minutes") told by a client that knows nothing but HTTP. `make story` runs it."""
