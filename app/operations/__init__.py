"""What a server process does besides answering: background tasks, housekeeping, workers."""
