"""The service from a terminal: register, estimate, compare, look back; over HTTP or in place."""
