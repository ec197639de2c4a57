"""What leaves the service: signed events, to addresses that are checked twice."""
