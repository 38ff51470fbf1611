"""A small app that declares two repositories of its own, as a developer who builds on the platform would."""
