"""The service with a fault inside that quotes all it should not: ``em`` fails on every batch."""

from typing import Any

from app.api import estimates
from app.cli import main
from app.estimation import estimate
from tests.end_to_end.values import VALUES


def faulty(source: Any, batch: Any, asked: Any, nulls: Any) -> Any:
    """Fails with a cause that quotes too."""
    if asked.method != "em":
        return estimate(source, batch, asked, nulls)
    try:
        return dict[str, int]()[" ".join(VALUES)]
    except KeyError as error:
        raise RuntimeError(" ".join(VALUES)) from error


if __name__ == "__main__":
    vars(estimates)["estimate"] = faulty
    main()
