"""Where the command begins: a health check is answered before the command line is loaded."""

import sys


def main() -> None:
    """``priorshift``."""
    words = sys.argv[1:]
    if words[:1] == ["health"]:
        from app import health

        asked = health.asked(words[1:])
        if asked is not None:
            sys.exit(health.check(*asked))
    from app.cli import main

    main()


if __name__ == "__main__":
    main()
