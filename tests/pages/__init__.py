"""Every page of the product: what it is opened with, a test that walks through all of them, and pictures of some."""
