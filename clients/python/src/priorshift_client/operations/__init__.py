"""Every operation as a function from its arguments to a call."""
