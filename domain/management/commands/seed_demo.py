"""`manage.py seed_demo`: load the demo data."""

from __future__ import annotations

import sys
import time
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from domain.demo.seed import MASS, SIZES, seed
from identity.management.support import PlatformCommand

_BAR = 40


class Command(PlatformCommand):
    """Loads the demo data, in demo mode only; what is there already stays."""

    help = (
        "Load the demo data: a small trading company with products, customers and orders; the larger sizes add mass "
        "data for benchmarks."
    )
    example = "manage.py seed_demo --size medium"

    def add_arguments(self, parser: CommandParser) -> None:
        sizes = ", ".join(f"{size}: {products:,} + {orders:,}" for size, (products, orders) in MASS.items())
        parser.add_argument(
            "--size",
            choices=SIZES,
            default="small",
            help=f"how many products and orders beside the company's ({sizes})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError(
                "The demo data has logins and secrets that everybody knows, so it is for demo mode only: set DEMO=1."
            )
        started = time.monotonic()
        seed(options["size"], ProgressBar() if options["verbosity"] > 0 else _silent)
        if options["verbosity"] > 0:
            self.stdout.write(f"The demo data is loaded ({time.monotonic() - started:.1f} s).")


def _silent(what: str, done: int, count: int) -> None:
    pass


class ProgressBar:
    """One line on stderr for each kind of data, redrawn as it grows; in a log, a line for each tenth."""

    def __init__(self) -> None:
        self.out = sys.stderr
        self.watched = self.out.isatty()
        self.started = 0.0
        self.tenth = 0

    def __call__(self, what: str, done: int, count: int) -> None:
        if done == 0:
            self.started, self.tenth = time.monotonic(), 0
        if not self.watched:
            if done * 10 // count <= self.tenth:
                return
            self.tenth = done * 10 // count
        filled = _BAR * done // count
        seconds = time.monotonic() - self.started
        line = f"{what:<16} [{'#' * filled}{'.' * (_BAR - filled)}] {done:,}/{count:,}  {seconds:.1f} s"
        end = "\n" if done == count else ""
        self.out.write(f"\r{line}{end}" if self.watched else f"{line}\n")
        self.out.flush()
