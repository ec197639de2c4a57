"""The rule for names, and for cells of sheets, against Unicode's own tables and a spreadsheet's."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core import names, sheets
from app.core.names import Spellings, composed, named, visible, worded

E, E_APART = "caf\u00e9", "cafe\u0301"
UNSEEN = [
    "\x00",
    "\t",
    "\n",
    "\x1b",
    "\x7f",
    "\x85",
    "\u00ad",
    "\u034f",
    "\u061c",
    "\u200b",
    "\u200c",
    "\u200d",
    "\u200e",
    "\u200f",
    "\u2028",
    "\u2029",
    "\u202a",
    "\u202e",
    "\u2060",
    "\u2066",
    "\u2069",
    "\u2800",
    "\u3164",
    "\ufe0f",
    "\ufeff",
    "\U000e0041",
    "\ud800",
    "\udfff",
]


@pytest.mark.parametrize("character", UNSEEN)
def test_what_nobody_sees_is_refused_wherever_it_stands(character: str) -> None:
    for text in (character, f"fra{character}ud", f"{character}fraud", f"fraud{character}"):
        with pytest.raises(ValueError, match=f"U\\+{ord(character):04X}"):
            named(text)
        assert character not in visible(text)


def test_every_control_format_and_surrogate_character_is_refused() -> None:
    """But those of category Cf that are drawn, and ZWNJ and ZWJ where writing needs them."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            continue
        if character in names.VISIBLE:
            assert named(f"a{character}1") == f"a{character}1"
            continue
        with pytest.raises(ValueError, match="leave it out"):
            named(f"a{character}b")


@pytest.mark.parametrize(
    "text",
    [
        "می‌خواهم",  # ZWNJ between Arabic letters
        "क्‍ष",  # ZWJ after a virama
        "क्‌ष",  # ZWNJ after a virama
        "Ελλάδα",
        "日本語",
        "naïve",
        "=SUM(A1)",
        "a b",
        "",
        "👍",
    ],
)
def test_ordinary_writing_is_taken(text: str) -> None:
    assert named(text) == unicodedata.normalize("NFC", text)
    assert visible(text) == text


def test_a_description_may_have_lines_and_joiners_but_no_overrides() -> None:
    for text in ("one\ntwo\tthree\r\n", "👩‍⚕️ ❤️", "می‌خواهم", "\u200fעברית", E_APART):
        assert worded(text) == text
    for bad in ("\x00", "\x1b[31m", "\x85", "\ud800", *"\u202a\u202e\u2066\u2069"):
        with pytest.raises(ValueError, match="leave it out"):
            worded(f"a{bad}b")


@given(st.text())
def test_a_name_that_is_taken_is_in_form_c_and_stays(text: str) -> None:
    try:
        found = named(text)
    except ValueError:
        assert visible(text) != text
        return
    assert found == unicodedata.normalize("NFC", text)
    assert named(found) == found
    assert visible(found) == found


@given(st.lists(st.text(), unique=True), st.text())
def test_a_spelling_is_found_by_itself_first_and_by_form_c_where_that_is_one(
    known: list[str], text: str
) -> None:
    spelled = Spellings(known)
    for k, name in enumerate(known):
        assert spelled.find(name) == k
    same = [k for k, name in enumerate(known) if composed(name) == composed(text)]
    expected = known.index(text) if text in known else same[0] if len(same) == 1 else None
    assert spelled.find(text) == expected


def test_two_names_that_are_one_are_found_by_their_own_spelling_alone() -> None:
    """As a database from before may have them."""
    spelled = Spellings([E, E_APART])
    assert (spelled.find(E), spelled.find(E_APART)) == (0, 1)
    other = "cafe\u0301\u0323"
    assert Spellings(["ca", other]).find(unicodedata.normalize("NFC", other)) == 1
    assert Spellings([E_APART]).find(E) == 0
    assert Spellings([E]).find(E_APART) == 0
    assert Spellings([E]).find("cafe") is None


class TestCells:
    @pytest.mark.parametrize(
        "text",
        [
            '=HYPERLINK("http://x","y")',
            "+1+1",
            "-2+3",
            "-",
            "@SUM(A1)",
            "\t=1",
            "\r=1",
            "\n=1",
            " =1",
            "＝1",
            "'=1",
            "''=1",
        ],
    )
    def test_what_a_spreadsheet_takes_for_a_formula_begins_with_an_apostrophe(
        self, text: str
    ) -> None:
        assert sheets.cell(text) == f"'{text}"
        assert sheets.plain(sheets.cell(text)) == text

    @pytest.mark.parametrize(
        "text", ["-1", "+1", "-1.5e3", "+.5", "fraud", "a=b", "1", "'a", "", "é"]
    )
    def test_numbers_and_other_text_stay(self, text: str) -> None:
        assert sheets.cell(text) == text
        assert sheets.plain(text) == text

    @given(st.text(alphabet="'=+-@ 1a\t\r\n＝"))
    def test_it_is_read_back(self, text: str) -> None:
        written = sheets.cell(text)
        assert sheets.plain(written) == text
        dangerous = written[:1] in tuple("=+-@\t\r\n＝") and written != ""
        assert not dangerous or sheets.NUMBER.fullmatch(written)

    @given(st.lists(st.text(alphabet="'=-1a", min_size=1), unique=True))
    def test_columns_of_our_sheets_are_found(self, classes: list[str]) -> None:
        header = sheets.Header([sheets.cell(name) for name in classes], sheet=True)
        assert [header.find(name) for name in classes] == [sheets.cell(n) for n in classes]

    @pytest.mark.parametrize("name", ["=a", "'=a", "-1", "a", E])
    def test_columns_of_other_sheets_are_found(self, name: str) -> None:
        assert sheets.Header([name, "z"], sheet=True).find(name) == name
        apart = unicodedata.normalize("NFD", name)
        assert sheets.Header([apart], sheet=True).find(name) == apart
        assert sheets.Header([apart], sheet=False).find(name) == apart
