"""The functions of the read engine that other packages call."""
