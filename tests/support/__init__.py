"""Helpers of the tests: programs that may be missing, a receiver on loopback, the real instance as a process."""
