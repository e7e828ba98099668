"""`mmgibbs open`: its options, and what it prints."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

from mmgibbs.errors import ConfigError
from mmgibbs.options import BAD_INPUT, NumberRange, describe

PORT = NumberRange(0, 65535, is_whole=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Open a page in the browser that drafts, checks and runs the analyses of a folder, shows how far a run is, and "
        "has its report. It does nothing that the other commands cannot do: it calls mmgibbs init, check and run in "
        "the folder.",
        "Only this machine can reach the page (127.0.0.1), and only with the token in its address: keep the address to "
        "yourself. The page ends with Ctrl-C; a run that it has started goes on.",
    )
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default=".", help="the folder (default: this one)")
    parser.add_argument("--port", type=PORT, default=0, metavar="N", help="the port (default: any free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")


def main(args: argparse.Namespace) -> int:
    """BAD_INPUT if the library of the server is not there."""
    if find_spec("werkzeug") is None:
        print("no page: found no werkzeug; needed: pip install mmgibbs[open]", file=sys.stderr)
        return BAD_INPUT
    from mmgibbs.local_page.server import make_server
    from mmgibbs.machine.signals import end_like_ctrl_c

    folder = Path(args.folder)
    if not folder.is_dir():
        got = "a file" if folder.exists() else "nothing"
        raise ConfigError(f"open: '{folder}': expected a folder, got {got}")
    page, server = make_server(folder.resolve(), int(args.port))
    print(page.address, flush=True)
    print("keep this address to yourself; Ctrl-C ends the page", file=sys.stderr, flush=True)
    if not args.no_browser:
        webbrowser.open(page.address_used_once)
    with end_like_ctrl_c():
        server.serve_forever()  # ends with Ctrl-C
    print("\nthe page has ended", file=sys.stderr)
    job = page.job
    if job is not None and (process := job.leave()) is not None:
        end = f"taskkill /pid {process}" if os.name == "nt" else f"kill {process}"
        print(f"the run goes on as process {process}: {shlex.join(job.words)}", file=sys.stderr)
        print(f"stop it with: {end}", file=sys.stderr)
        print(f"how far it is: {shlex.quote(str(job.run_folder / 'run.log'))}", file=sys.stderr)
    return 0


COMMANDS = {"open": (add_arguments, main)}
