import httpx
import sqlalchemy as sa

from app.main import create_app
from app.settings import Settings
from models_store import schema
from models_store.engine import connect
from tests.conftest import served

HEAD = {"head": schema.head()}


def test_alive_ready_and_named(client: httpx.Client) -> None:
    assert client.get("/livez").json() == {"status": "alive"}
    assert client.get("/readyz").json() == {"status": "ready"}
    shown = client.get("/version").json()
    assert shown["name"] == "priorshift"
    assert shown["schema_revision"] == schema.head()


def test_an_unmigrated_database_is_not_ready(database_url: str) -> None:
    engine = connect(database_url)
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = 'old'"))
    with served(create_app(Settings(database_url=database_url))) as client:
        assert client.get("/livez").status_code == 200
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "priorshift migrate" in answer.json()["detail"]
        assert answer.headers["retry-after"]
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :head"), HEAD)
    engine.dispose()


def test_an_unreachable_database_is_503_everywhere() -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    with served(create_app(Settings(database_url=url))) as client:
        assert client.get("/livez").status_code == 200
        for path in ("/readyz", "/v1/models"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.headers["retry-after"]


def test_the_description_is_complete(lasting: httpx.Client) -> None:
    description = lasting.get("/openapi.json").json()
    text = str(description)
    schemas = description["components"]["schemas"]
    for path in description["paths"].values():
        for operation in path.values():
            assert operation["responses"]
    for name in {part.split("'")[0] for part in text.split("#/components/schemas/")[1:]}:
        assert name in schemas
    assert lasting.get("/docs").status_code == 200
