"""The catalogue of functions and actions, and the operations of the domain."""
