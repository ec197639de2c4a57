"""Names as the service has them: in Unicode's normal form C, and in CSV never a formula."""

import re
import unicodedata
from collections.abc import Sequence

FORMULA = re.compile("'+(?:[\t\r\n]|\\s*[=+\\-@＝＋－＠])")


def place_of(name: str, names: Sequence[str]) -> int:
    """Where a name is among those of the service, in whatever form; ``KeyError`` if nowhere."""
    if name in names:
        return names.index(name)
    forms = [unicodedata.normalize("NFC", known) for known in names]
    form = unicodedata.normalize("NFC", name)
    if forms.count(form) != 1:
        raise KeyError(name)
    return forms.index(form)


def name_of(cell: str) -> str:
    """The name in a cell of the service's CSV, without the apostrophe that keeps sheets harmless.

    pandas.read_csv("adjusted.csv").rename(columns=name_of)
    """
    return cell[1:] if FORMULA.match(cell) else cell
