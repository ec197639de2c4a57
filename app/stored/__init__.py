"""What the database keeps as JSON, as types: each written and read in one place, with a format."""
