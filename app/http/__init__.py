"""What every route shares: bodies, negotiation, problems, idempotency, admission, paging."""
