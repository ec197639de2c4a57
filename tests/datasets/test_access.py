"""What callers may read: files below the roots, whatever they write and whatever links say."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.errors import InvalidInput
from app.datasets.listing import Listing
from app.datasets.local import LocalFolders
from app.datasets.roots import Root, Roots
from app.settings import Settings

SUFFIXES = (".parquet", ".csv")
AT = "/dataset/path"

HOSTILE = [
    "",
    "/",
    "/etc/passwd",
    "//etc/passwd",
    "..",
    "../outside.csv",
    "scores/..",
    "scores/../../outside.csv",
    "scores/../scores/a.csv",
    "./scores/a.csv",
    "scores/./a.csv",
    "scores//a.csv",
    "scores/a.csv//",
    "..\\outside.csv",
    "scores\\a.csv",
    "C:\\outside.csv",
    "C:/outside.csv",
    "\\\\host\\share\\a.csv",
    "%2e%2e/outside.csv",
    "..%2foutside.csv",
    "%252e%252e%252foutside.csv",
    "scores%2fa.csv",
    "scores/a.csv%00",
    "scores/a.csv\x00",
    "scores/a.csv\x00.parquet",
    "scores/a\n.csv",
    "scores/a\r.csv",
    "scores/\x1b[2Ja.csv",
    "scores/\u2028a.csv",
    "scores/\ud800a.csv",
    "~/a.csv",
    "~root/a.csv",
    "scores/~/a.csv",
    "$HOME/a.csv",
    "${HOME}/a.csv",
    "scores/$(id).csv",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "file:outside.csv",
    "FILE:///etc/passwd",
    "local:///etc/passwd",
    "s3://bucket/a.parquet",
    "s3:bucket/a.parquet",
    "gs://bucket/a.parquet",
    "memory://a.csv",
    "http://169.254.169.254/latest/meta-data/a.csv",
    "https://example.com/a.csv",
    "ftp://example.com/a.csv",
    "sftp://example.com/a.csv",
    "github://org:repo@main/a.csv",
    "simplecache::s3://bucket/a.csv",
    "zip://a.csv::file:///outside.zip",
    "data:text/csv,a",
    "jar:file:a",
    "://a.csv",
    "other:scores/a.csv",
    "scores/**/**/a.csv",
    "scores/a**/a.csv",
    "**/" * 40 + "a.csv",
    "a/" * 40 + "a.csv",
    "a" * 2000,
    "scores/a.csv/b.csv",
    "scores/a.csv/",
    "scores/missing.csv",
    "missing/",
    "scores/secret.txt",
    "．．/outside.csv",
    "..／outside.csv",
    "scores/‥/a.csv",
    " ../outside.csv",
    "../outside.csv ",
    "[.][.]/outside.csv",
    "?./outside.csv",
    "*/../outside.csv",
    ".*/outside.csv",
    "link-out.csv",
    "scores/link-out.csv",
    "scores/link-up/outside.csv",
    "scores/link-up/",
    "scores/link-up/*",
    "scores/link-absolute.csv",
    "scores/link-dangling.csv",
    "scores/link-loop.csv",
    "scores/link-twice.csv",
    "scores/link-sibling.csv",
    "scores/link-*.csv",
    "**/*.csv",
    "scores/",
    "scores/pipe.csv",
    "scores/socket.csv",
    "scores/null.csv",
]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a good file, and every way out of it that a file system has."""
    (tmp_path / "outside.csv").write_text("secret\n")
    (tmp_path / "root-sibling").mkdir()
    (tmp_path / "root-sibling" / "a.csv").write_text("secret\n")
    scores = tmp_path / "root" / "scores"
    scores.mkdir(parents=True)
    (scores / "a.csv").write_text("x\n1\n")
    (scores / "secret.txt").write_text("secret\n")
    os.symlink("../outside.csv", tmp_path / "root" / "link-out.csv")
    os.symlink("../../outside.csv", scores / "link-out.csv")
    os.symlink("../..", scores / "link-up")
    os.symlink(tmp_path / "outside.csv", scores / "link-absolute.csv")
    os.symlink("nowhere.csv", scores / "link-dangling.csv")
    os.symlink("link-loop.csv", scores / "link-loop.csv")
    os.symlink("link-absolute.csv", scores / "link-twice.csv")
    os.symlink("../../root-sibling/a.csv", scores / "link-sibling.csv")
    os.mkfifo(scores / "pipe.csv")
    with socket.socket(socket.AF_UNIX) as listening:
        where = os.getcwd()
        os.chdir(scores)
        listening.bind("socket.csv")
        os.chdir(where)
    os.symlink("/dev/null", scores / "null.csv")
    return tmp_path / "root"


def found(root: Path, text: str, most: int = 100) -> list[str]:
    origin, path = Roots.of([str(root)]).find(text, AT)
    return [f.path for f in Listing(origin.folders, SUFFIXES, AT, most).files(path)]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_paths_are_refused_without_saying_where_the_root_is(tree: Path, text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        found(tree, text)
    fault = caught.value.faults[0]
    assert fault.pointer == AT
    assert str(tree) not in fault.message
    assert "secret" not in fault.message.replace("secret.txt", "")
    fault.message.encode()


def test_the_good_file_beside_them_is_found(tree: Path) -> None:
    assert found(tree, "scores/a.csv") == ["scores/a.csv"]
    assert found(tree, "scores/[a]*.csv") == ["scores/a.csv"]
    assert found(tree, "s*/a.csv") == ["scores/a.csv"]


@given(st.text(st.sampled_from("./\\*?[]!~%$:ascv\x00 \u2025é"), max_size=20))
def test_no_path_leaves_the_root(text: str) -> None:
    folders = LocalFolders("/usr/include")
    try:
        _, path = Roots.of(["/usr/include"]).find(text, AT)
        files = Listing(folders, (".h",), AT, 20).files(path)
    except InvalidInput:
        return
    for file in files:
        assert ".." not in file.place
        with folders.open(file.place) as opened:
            real = os.path.realpath(f"/proc/self/fd/{opened.fileno()}")
            assert real.startswith("/usr/include/")


@pytest.mark.parametrize(
    "place",
    [
        ("scores", "link-out.csv"),
        ("scores", "link-up", "outside.csv"),
        ("scores", "link-absolute.csv"),
        ("scores", "link-dangling.csv"),
        ("scores", "link-loop.csv"),
        ("scores", "link-sibling.csv"),
        ("scores", "pipe.csv"),
        ("scores", "socket.csv"),
        ("scores", "null.csv"),
        ("scores",),
        ("..", "outside.csv"),
        ("scores", "missing.csv"),
    ],
)
def test_what_is_opened_is_checked_again(tree: Path, place: tuple[str, ...]) -> None:
    with pytest.raises(OSError) as caught:
        LocalFolders(str(tree)).open(place)
    assert str(tree) not in str(caught.value)


@pytest.mark.parametrize("step", [("scores", "a.csv"), ("scores",)])
def test_a_link_put_in_the_way_between_check_and_opening_is_refused(
    tree: Path, step: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.parent / "scores").mkdir()
    (tree.parent / "scores" / "a.csv").write_text("secret\n")
    resolve: Callable[..., str] = os.path.realpath

    def swapped(path: str, *, strict: bool = False) -> str:
        real = resolve(path, strict=strict)
        if strict:
            place = tree.joinpath(*step)
            place.rename(tree / "moved")
            place.symlink_to(tree.parent.joinpath("scores", *step[1:]))
        return real

    monkeypatch.setattr(os.path, "realpath", swapped)
    with pytest.raises(OSError):
        LocalFolders(str(tree)).open(("scores", "a.csv"))


def test_links_within_the_root_are_followed_and_circles_are_not(tmp_path: Path) -> None:
    for day in ("01", "02"):
        (tmp_path / "days" / day).mkdir(parents=True)
        (tmp_path / "days" / day / "a.parquet").write_bytes(b"")
    os.symlink("days/01/a.parquet", tmp_path / "latest.parquet")
    os.symlink("days", tmp_path / "again")
    os.symlink("..", tmp_path / "days" / "up")
    os.symlink("02", tmp_path / "days" / "two")
    assert found(tmp_path, "latest.parquet") == ["latest.parquet"]
    assert found(tmp_path, "again/01/a.parquet") == ["again/01/a.parquet"]
    both = ["days/01/a.parquet", "days/02/a.parquet"]
    assert [p for p in found(tmp_path, "days/") if "latest" not in p] == both
    assert len(found(tmp_path, "**/*.parquet")) == 3
    with LocalFolders(str(tmp_path)).open(("latest.parquet",)) as file:
        assert file.read() == b""


def test_patterns(tmp_path: Path) -> None:
    names = [
        "scores/country=BE/a.parquet",
        "scores/country=BE/b.parquet",
        "scores/country=NL/a.parquet",
        "scores/country=NL/_temporary/a.parquet",
        "scores/country=NL/.b.parquet",
        "scores/_SUCCESS",
        "scores/README",
        "scores/z.csv",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    parquet = names[:3]
    everything = [*parquet, "scores/z.csv"]
    assert found(tmp_path, "scores/") == everything
    assert found(tmp_path, "scores") == everything
    assert found(tmp_path, "scores/**") == everything
    assert found(tmp_path, "scores/**/*.parquet") == parquet
    assert found(tmp_path, "scores/*/*.parquet") == parquet
    assert found(tmp_path, "scores/country=*/") == parquet
    assert found(tmp_path, "**/a.parquet") == [parquet[0], parquet[2]]
    assert found(tmp_path, "scores/country=[!B]?/*") == [parquet[2]]
    assert found(tmp_path, "scores/country=NL/_*/*") == [names[3]]
    assert found(tmp_path, "*/*.csv") == ["scores/z.csv"]
    for nothing in ("scores/*.parquet", "scores/country=*", "country=BE/", "scores/country=[BE/*"):
        with pytest.raises(InvalidInput, match="stands for no file"):
            found(tmp_path, nothing)
    with pytest.raises(InvalidInput, match="must end in one of"):
        found(tmp_path, "scores/R*")


def test_files_and_names_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(12):
        (tmp_path / f"{k}.csv").write_bytes(b"")
    assert len(found(tmp_path, "*.csv", 12)) == 12
    with pytest.raises(InvalidInput, match="more than 11 files"):
        found(tmp_path, "*.csv", 11)
    monkeypatch.setattr("app.datasets.listing.MOST_LOOKED_AT", 11)
    with pytest.raises(InvalidInput, match="more than 11 names"):
        found(tmp_path, "?.csv")


def test_names_that_cannot_be_shown_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a\u202eb.csv").write_bytes(b"")
    (tmp_path / os.fsdecode(b"c\xff.csv")).write_bytes(b"")
    for text in ("a*.csv", "c*.csv", "*"):
        with pytest.raises(InvalidInput, match="cannot be shown") as caught:
            found(tmp_path, text)
        caught.value.faults[0].message.encode()


def test_one_root_needs_no_name_and_several_do() -> None:
    only = Roots.of(["/data"])
    assert only.find("a.csv", AT)[0] == Root("", "/data")
    named = Roots.of(["day=/data", "lake=s3://bank/scores"])
    root, path = named.find("lake:2026/*.csv", AT)
    assert root == Root("lake", "s3://bank/scores")
    assert path.segments == ("2026", "*.csv")
    assert Roots.of(["day=/data"]).find("a/b:c.csv", AT)[1].segments == ("a", "b:c.csv")
    for roots, text in ((named, "a.csv"), (named, "s3:a.csv"), (only, "day:a.csv")):
        with pytest.raises(InvalidInput, match="root"):
            roots.find(text, AT)
    with pytest.raises(InvalidInput, match="PRIORSHIFT_DATA_ROOTS"):
        Roots.of([]).find("a.csv", AT)


@pytest.mark.parametrize(
    "roots",
    [
        ["data"],
        ["./data"],
        [""],
        ["~/data"],
        ["file:///data"],
        ["http://host/data"],
        ["s3://key:secret@bucket/data"],
        ["simplecache::s3://bucket"],
        ["/data", "/more"],
        ["a=/data", "a=/more"],
        ["a=/data", "/more"],
        ["A B=/data"],
        ["/da\x00ta"],
    ],
)
def test_settings_that_are_no_roots_stop_the_start(roots: list[str]) -> None:
    with pytest.raises(ValueError) as caught:
        Settings(data_roots=roots)
    assert "secret" not in str(caught.value)


def test_object_storage_is_listed_and_read(tmp_path: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe_file("/bank/scores/day=1/a.csv", b"x\n1\n")
    memory.pipe_file("/bank/scores/b.csv", b"x\n2\n")
    memory.pipe_file("/other/c.csv", b"secret\n")
    root, path = Roots.of(["lake=memory://bank"]).find("lake:scores/**/*.csv", AT)
    files = Listing(root.folders, SUFFIXES, AT).files(path)
    assert [f.path for f in files] == ["scores/b.csv", "scores/day=1/a.csv"]
    assert [f.size for f in files] == [4, 4]
    with root.folders.open(files[1].place) as file:
        assert file.read() == b"x\n1\n"
    with pytest.raises(FileNotFoundError) as caught:
        root.folders.open(("missing.csv",))
    assert "bank" not in str(caught.value)
    with pytest.raises(InvalidInput):
        Listing(root.folders, SUFFIXES, AT).files(path.__class__(None, ("..", "other", "c.csv")))
