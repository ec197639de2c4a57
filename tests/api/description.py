"""The API's description as it was agreed; ``python -m tests.api.description`` writes it anew."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.main import create_app
from app.settings import Settings

AGREED = Path(__file__).parent.parent / "data" / "openapi.json"


def described() -> Any:
    """What this release says of itself, but for its number."""
    with TemporaryDirectory() as folder:
        app = create_app(Settings(database_url=f"sqlite:///{folder}/unused.db"))
        content = json.loads(json.dumps(app.openapi()))
        app.state.services.store.close()
    content["info"].pop("version")
    return content


def main() -> None:
    """Write it."""
    text = json.dumps(described(), indent=1, sort_keys=True, ensure_ascii=False)
    AGREED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
