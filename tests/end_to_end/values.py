"""Values that no log may hold."""

LABEL = "planted-label"
LEVEL = "planted-level"
SEGMENT = "planted-segment"
IDEMPOTENCY = "planted-idempotency"
ADMIN = "planted-admin-key-0123456789-0123456789"
SECRET = "planted-key-secret"
PASSWORD = "planted-password"
POSTERIOR = 0.123456789
FEATURE = 7654.3217
VALUES = (
    *(LABEL, LEVEL, SEGMENT, IDEMPOTENCY, ADMIN, SECRET, PASSWORD),
    *(str(POSTERIOR), str(FEATURE)),
)
MARKS = ("planted", "0.12345", "7654.3")
"""What every one of them, however it is rounded, is recognised by."""
