"""Pictures of the pages for the documentation, of a service that a run has filled.

``make screenshots`` writes docs/images/*.png. It takes Chromium (``apt-get install chromium``).
"""

import argparse
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import httpx
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page, sync_playwright

from app.demo import free_port, service
from benchmarks.filled import CARDS, batch, fill

FOLDER = Path("docs/images")
COLOURS = 256
"""Of a picture: enough for flat surfaces, and half of the bytes."""


@dataclass(frozen=True)
class Shot:
    """A page to be taken; ``charts``: how many must be drawn; ``height`` None: all of it."""

    name: str
    address: str
    charts: int = 0
    scheme: str = "light"
    width: int = 1120
    height: int | None = None
    file: bool = False


def shots(last: dict[str, str]) -> list[Shot]:
    """Every picture there is."""
    return [
        Shot("overview", "/"),
        Shot("overview-phone", "/", scheme="dark", width=390, height=1100),
        Shot("monitor", "/monitors/payments", charts=1),
        Shot("monitor-dark", "/monitors/payments", charts=1, scheme="dark", height=1100),
        Shot("estimate", f"/estimates/{last['tickets']}", charts=4),
        Shot("estimate-phone", f"/estimates/{last['cards']}", 4, "dark", 390, 1300),
        Shot("version", "/models/tickets/versions/1", charts=2, height=1400),
        Shot("try", "/try?model=cards", file=True),
    ]


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        opened = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=arguments
        )
        yield opened
        opened.close()


def take(opened: Browser, base: str, shot: Shot) -> bytes:
    """A picture as PNG."""
    context = opened.new_context(
        viewport={"width": shot.width, "height": shot.height or 900},
        color_scheme="dark" if shot.scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(base + shot.address)
    if shot.file:
        _try(page)
    if shot.charts:
        page.locator("[data-drawn]").nth(shot.charts - 1).wait_for()
    page.wait_for_timeout(300)
    taken = page.screenshot(full_page=shot.height is None)
    context.close()
    whole = Image.open(BytesIO(taken)).convert("RGB")
    # An octree keeps the rare colours of lines and marks; a median cut would grey them.
    octree = Image.Quantize.FASTOCTREE
    picture = whole.quantize(COLOURS, octree, dither=Image.Dither.NONE)
    small = BytesIO()
    picture.save(small, "PNG", optimize=True)
    return small.getvalue()


def _try(page: Page) -> None:
    rows = batch(CARDS, np.random.default_rng(9), 1.0, 3000)
    text = "legit,fraud\n" + "\n".join(f"{a:.9f},{b:.9f}" for a, b in rows)
    page.locator("[value=rffm]:disabled").wait_for()
    for method in ("pcc", "bayes", "cde"):
        page.check(f"[value={method}]")
    file = FilePayload(name="cards.csv", mimeType="text/csv", buffer=text.encode())
    page.set_input_files("#file", file)
    page.click("#run")
    page.locator("#trace-chart[data-drawn]").wait_for()


def main() -> None:
    """Fill a service, and take every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER)
    folder = parser.parse_args().to
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as place,
        service(f"sqlite:///{place}/pages.db", free_port()) as (base, _),
    ):
        with httpx.Client(base_url=base, timeout=60) as client:
            last = fill(client)
        with browser() as opened:
            for shot in shots(last):
                path = folder / f"{shot.name}.png"
                path.write_bytes(take(opened, base, shot))
                print(f"{path}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
