"""What survives: kills, outages of the database, hours of load, a full disk."""
