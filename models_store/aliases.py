"""Names that point to versions."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from models_store.errors import NotFound
from models_store.models import Models
from models_store.records import AliasRecord
from models_store.tables import aliases, versions


class Aliases:
    """Aliases by model and name."""

    def __init__(self, connection: Connection, changed: set[str]) -> None:
        self._connection = connection
        self._models = Models(connection, changed)

    def put(self, model: str, alias: str, version: int, now: datetime) -> AliasRecord:
        """Point ``alias`` to a version, whether or not it existed."""
        owner = self._models.lock(model)
        target = sa.select(versions.c.id).where(
            versions.c.model_id == owner.id, versions.c.number == version
        )
        version_id = self._connection.execute(target).scalar_one_or_none()
        if version_id is None:
            raise NotFound(f"model {model} has no version {version}")
        self._connection.execute(_matching(owner.id, alias))
        self._connection.execute(
            aliases.insert().values(
                model_id=owner.id, alias=alias, version_id=version_id, updated_at=now
            )
        )
        return AliasRecord(model, alias, version, now)

    def get(self, model: str, alias: str) -> AliasRecord:
        """The alias, or ``NotFound``."""
        found = [record for record in self.of(model) if record.alias == alias]
        if not found:
            raise NotFound(f"model {model} has no alias {alias}")
        return found[0]

    def of(self, model: str) -> list[AliasRecord]:
        """All aliases of a model, by name."""
        owner = self._models.get(model)
        statement = (
            sa.select(aliases.c.alias, versions.c.number, aliases.c.updated_at)
            .join_from(aliases, versions)
            .where(aliases.c.model_id == owner.id)
            .order_by(aliases.c.alias)
        )
        rows = self._connection.execute(statement).all()
        return [AliasRecord(model, row.alias, row.number, row.updated_at) for row in rows]

    def delete(self, model: str, alias: str) -> None:
        """Remove the alias; ``NotFound`` if there is none."""
        owner = self._models.lock(model)
        if self._connection.execute(_matching(owner.id, alias)).rowcount == 0:
            raise NotFound(f"model {model} has no alias {alias}")


def _matching(model_id: int, alias: str) -> sa.Delete:
    return aliases.delete().where(aliases.c.model_id == model_id, aliases.c.alias == alias)
