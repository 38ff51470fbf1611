"""Measurements: ratios against floors of the same run, never absolute limits."""
