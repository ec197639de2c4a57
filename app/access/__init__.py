"""Who may call: API keys, sessions of browsers, and callers who were known lately."""
