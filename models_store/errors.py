"""What the store can refuse.

StoreError
├── NotFound             no such model, version, alias or estimate
├── AlreadyExists        a name that is taken
├── OtherKind            a model of a kind that cannot do what is asked
├── StillInUse           a model with estimates, deleted without force
├── OtherInput           rows of another kind than a monitor has
├── TooMany              one more than is allowed
├── IdempotencyConflict  a key that was used with another body
├── AlreadyAnswered      a concurrent request with the same key committed first
├── LostLease            a task that somebody else has taken meanwhile
├── Unavailable          the database cannot be reached, or stayed locked
└── WrongRevision        the database belongs to another release
"""


class StoreError(Exception):
    """Root of the store's errors; the message is for the caller."""


class NotFound(StoreError):
    """No such thing."""


class AlreadyExists(StoreError):
    """The name is taken."""


class OtherKind(StoreError):
    """The model is of a kind that cannot do this."""


class StillInUse(StoreError):
    """Deleting it would lose estimates."""


class OtherInput(StoreError):
    """The monitor holds rows of another kind."""


class TooMany(StoreError):
    """There are as many as are allowed."""


class IdempotencyConflict(StoreError):
    """The key was used for another request."""


class AlreadyAnswered(StoreError):
    """A concurrent request with the same key committed first; its answer is recorded."""


class LostLease(StoreError):
    """The lease ran out and somebody else took the task; nothing may be written for it."""


class Unavailable(StoreError):
    """The database cannot be reached, or stayed locked; trying again may help."""


class WrongRevision(StoreError):
    """The database belongs to another release."""
