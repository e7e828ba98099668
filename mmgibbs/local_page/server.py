"""The server of the page: what it answers to whom, and the commands that its forms start.

Another site, another user of this machine and a page of a run folder are kept out by these:

- only 127.0.0.1 is bound, and a request must name it or localhost with this port (a name that leads here is refused);
- every address has a random token, and nothing is done but by POST;
- a request that a browser says comes from elsewhere (Origin, Sec-Fetch-Site) is refused;
- files of run folders have a token of their own, and the browser takes them for pages of another origin (`sandbox`);
- the browser is started with an address that is good for one request, for other users see the command.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
import socket
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from werkzeug.exceptions import Forbidden, HTTPException, MethodNotAllowed, NotFound
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler
from werkzeug.serving import make_server as make_wsgi_server
from werkzeug.utils import redirect, send_file
from werkzeug.wrappers import Request, Response

from mmgibbs.errors import ConfigError
from mmgibbs.local_page.files import ANALYSES, find_inside, find_run_folder, guess_file, list_files, name_new_analysis
from mmgibbs.local_page.job import RUN, Job, as_argument
from mmgibbs.machine.files import replaced_file
from mmgibbs.report.render import load_template
from mmgibbs.results.folder import CONTENTS, PAGES, RECORD

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

HOST = "127.0.0.1"
MAX_FORM_BYTES = 5_000_000
SHORT_WAIT = 0.5  # seconds in which a command may end before the browser asks again
MAX_LINES = 40  # of the output while a command runs
EARLIER = ("", "resume", "overwrite")  # what becomes of a run that the folder holds
HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}
# Not no-referrer, with which browsers send forms without their origin.
OF_PAGE = {
    "Referrer-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; "
    "connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
}
OF_FILE = {
    "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "sandbox allow-scripts allow-modals allow-downloads; default-src 'none'; "
    "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'",
}
TYPES = {".html": "text/html", ".csv": "text/csv", ".json": "application/json", ".log": "text/plain"}


class PageRequest(Request):
    """A request of the page, with limits of its forms."""

    max_content_length = MAX_FORM_BYTES
    max_form_memory_size = MAX_FORM_BYTES


class QuietHandler(WSGIRequestHandler):
    """Writes no line for each request: it would have the token."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class LocalPage:
    """The page of a folder, as a WSGI application. One job runs at a time."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.token, self._token_of_files, self._used_once = (secrets.token_urlsafe() for _ in range(3))
        self.job: Job | None = None
        self._one_action = threading.Lock()
        self._views: dict[str, Callable[[PageRequest], Response]] = {
            "": self._show_folder, "analysis": self._show_analysis, "yaml": self._send_analysis, "job": self._show_job,
        }  # fmt: skip
        self._actions: dict[str, Callable[[PageRequest], Response]] = {
            "draft": self._draft, "analysis": self._change_analysis, "continue": self._continue, "stop": self._stop,
        }  # fmt: skip

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/{self.token}/"

    @property
    def address_used_once(self) -> str:
        """Leads to the address, once."""
        return f"http://{HOST}:{self.port}/{self._used_once}/"

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        request = PageRequest(environ)
        try:
            response = self._answer(request)
        except HTTPException as error:
            response = Response(f"{error.code} {error.name}\n{error.description}\n", error.code, mimetype="text/plain")
        for name, value in OF_FILE.items():
            response.headers.setdefault(name, value)
        response.headers.update(HEADERS)
        return response(environ, start_response)

    def _answer(self, request: PageRequest) -> Response:
        token, _, path = request.path.removeprefix("/").partition("/")
        self._refuse_strangers(request, _is_same(token, self._token_of_files))
        if _is_same(token, self._used_once):
            self._used_once = secrets.token_urlsafe()
            return redirect(self.address, 303)
        if _is_same(token, self._token_of_files):
            return self._send_file(request, path)
        if not _is_same(token, self.token):
            raise NotFound("Nothing is at this address. Use the one that mmgibbs open has printed.")
        known = self._actions if request.method == "POST" else self._views
        if path not in known:
            raise MethodNotAllowed() if path in self._actions or path in self._views else NotFound()
        if request.method not in ("GET", "HEAD", "POST"):
            raise MethodNotAllowed()
        if request.method != "POST":
            return known[path](request)
        with self._one_action:  # two at once would start two jobs
            return known[path](request)

    def _refuse_strangers(self, request: PageRequest, is_file: bool) -> None:
        """Forbidden for a request that does not come from a page of this server."""
        hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        if request.environ.get("HTTP_HOST") not in hosts:
            raise Forbidden("Expected a request for this machine by its name.")
        origin = request.headers.get("Origin")
        if origin is not None and origin not in {f"http://{host}" for host in hosts}:
            raise Forbidden("Expected a request of this page, got one of another page.")
        # The page of a run that works, which is of another origin, loads itself again.
        is_reload = is_file and request.headers.get("Sec-Fetch-Dest") == "document"
        if request.headers.get("Sec-Fetch-Site", "none") not in ("same-origin", "none") and not is_reload:
            raise Forbidden("Expected a request of this page, got one of another page.")

    # ------------------------------------------------------------------------------------------- what is shown

    def _render(self, view: str, status: int = 200, **context: Any) -> Response:
        nonce = secrets.token_urlsafe()
        names = {
            "view": view,
            "folder": self.folder,
            "root": f"/{self.token}/",
            "nonce": nonce,
            "message": "",
            **context,
        }
        text = load_template("local.html.j2").render(names | {"job": self._describe_job(context.get("file", ""))})
        headers = OF_PAGE | {"Content-Security-Policy": OF_PAGE["Content-Security-Policy"].format(nonce=nonce)}
        return Response(text, status, headers, "text/html")

    def _describe_job(self, file: str) -> dict[str, Any] | None:
        """What the page says of the job; None without one, and of one that has ended with another file."""
        job = self.job
        if job is None or (job.code is not None and file not in ("", job.file)):
            return None
        runs = job.code is None
        chains, left = job.read_progress() if runs and job.is_run else ([], "")
        lines = job.read_output().splitlines()
        total = sum(chain.total for chain in chains)
        return {
            "file": job.file,
            "command": job.command,
            "words": job.words,
            "state": "running" if runs else "done" if job.code == 0 else "stopped" if job.is_stopped else "failed",
            "is_stopping": runs and job.is_stopped,
            "elapsed": job.elapsed,
            "chains": chains,
            "left": left,
            "percent": 100 * sum(chain.sweep for chain in chains) // total if total else None,
            "warnings": list(dict.fromkeys(line for line in lines if line.startswith("warning: "))),
            "output": "\n".join(lines[-MAX_LINES:] if runs else lines),
            **self._describe_run(job.file),
        }

    def _describe_run(self, file: str) -> dict[str, Any]:
        """Addresses of the pages that the run of an analysis has written."""
        run = find_run_folder(self.folder, file)
        inside = run.relative_to(self.folder).as_posix() if run.is_relative_to(self.folder) else None
        pages = (
            {} if inside is None else {n: self._address_of_file(f"{inside}/{n}") for n in PAGES if (run / n).is_file()}
        )
        return {"run": run, "run_name": inside or run, "pages": pages, "is_complete": (run / RECORD).is_file()}

    def _address_of_file(self, name: str) -> str:
        return f"/{self._token_of_files}/{quote(name)}"

    def _show_folder(self, request: PageRequest, message: str = "", status: int = 200) -> Response:
        files = list_files(self.folder)
        form = request.form if request.method == "POST" else None
        chosen = {
            "records": guess_file(files.tables, "record", "pheno", "trial") or next(iter(files.tables), ""),
            "pedigree": guess_file(files.tables, "ped"),
            "genotypes": guess_file(files.genotypes, ".bed", ".vcf", ".pgen", "geno", "snp"),
            "traits": "",
            "output": name_new_analysis(self.folder),
        }
        chosen |= {} if form is None else {name: form.get(name, "") for name in chosen}
        analyses = [(name, self._describe_run(name)) for name in files.analyses]
        return self._render("folder", status, files=files, chosen=chosen, analyses=analyses, message=message)

    def _show_analysis(self, request: PageRequest) -> Response:
        file = request.args.get("file", "")
        return self._edit(file, _read(self._find_analysis(file)))

    def _edit(self, file: str, text: str, message: str = "", earlier: str = "") -> Response:
        shown = _digest(_read(self._find_analysis(file)))
        run = self._describe_run(file)
        status = 409 if message else 200
        return self._render(
            "analysis", status, file=file, text=text, shown=shown, message=message, earlier=earlier, **run
        )

    def _show_job(self, request: PageRequest) -> Response:
        job = self.job
        if job is None:
            return redirect(f"/{self.token}/", 303)
        job.wait(SHORT_WAIT)
        if job.code is None or job.is_run:
            return self._render("job")
        is_there = (self.folder / job.file).is_file()
        return redirect(self._address_of_analysis(job.file) if is_there else f"/{self.token}/", 303)

    def _address_of_analysis(self, file: str) -> str:
        return f"/{self.token}/analysis?file={quote(file, safe='')}"

    def _send_analysis(self, request: PageRequest) -> Response:
        path = self._find_analysis(request.args.get("file", ""))
        return send_file(path, request.environ, "application/yaml", as_attachment=True, download_name=path.name)

    def _send_file(self, request: PageRequest, name: str) -> Response:
        """A file that a run has written; any other is not sent."""
        path = find_inside(self.folder, name)
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed()
        if path is None or path.name not in CONTENTS or not path.is_file():
            raise NotFound()
        return send_file(path, request.environ, TYPES.get(path.suffix, "application/octet-stream"), etag=False)

    def _find_analysis(self, file: str) -> Path:
        path = find_inside(self.folder, file)
        if path is None or not path.is_file() or not path.name.lower().endswith(ANALYSES):
            raise NotFound(f"There is no analysis file of this name in the folder: {file!r}.")
        return path

    # --------------------------------------------------------------------------------------------- what is done

    def _start(self, file: str, *commands: list[str]) -> Response:
        self.job = Job(self.folder, file, commands)
        return redirect(f"/{self.token}/job", 303)

    @property
    def _busy(self) -> str:
        """Message where a job runs, '' where none does."""
        job = self.job
        return (
            ""
            if job is None or job.code is not None
            else f"'{shlex.join(job.words)}' runs. Wait for its end, or stop it."
        )

    def _draft(self, request: PageRequest) -> Response:
        given = {name: request.form.get(name, "").strip() for name in ("records", "pedigree", "genotypes", "output")}
        for name, file in given.items():
            if (file or name in ("records", "output")) and find_inside(self.folder, file) is None:
                return self._show_folder(request, f"{name}: expected a file in this folder, got {file!r}.", 400)
        if not given["output"].lower().endswith(ANALYSES):
            message = f"Analysis file: expected a name that ends with .yaml, got {given['output']!r}."
            return self._show_folder(request, message, 400)
        if self._busy:
            return self._show_folder(request, self._busy, 409)
        options = {name: given[name] for name in ("pedigree", "genotypes", "output")}
        options["traits"] = request.form.get("traits", "").strip()
        words = [f"--{name}={value}" for name, value in options.items() if value]
        return self._start(given["output"], ["init", as_argument(given["records"]), *words])

    def _change_analysis(self, request: PageRequest) -> Response:
        """Save the text, then check it, then run it, as far as is asked."""
        form = request.form
        file, earlier, action = form.get("file", ""), form.get("earlier", ""), form.get("action", "")
        if earlier not in EARLIER or action not in ("save", "check", "run"):
            raise NotFound()
        path = self._find_analysis(file)
        text, there = form.get("text", "").replace("\r\n", "\n"), _read(path)
        if self._busy:
            return self._edit(file, text, f"Nothing is saved: {self._busy}", earlier)
        if text != there and _digest(there) != form.get("shown"):
            message = "Nothing is saved: the file has changed since this page has read it. Save again to replace it."
            return self._edit(file, text, message, earlier)
        if text != there:
            with replaced_file(path) as new:
                new.write_text(text, encoding="utf-8", newline="\n")
        if action == "save":
            return redirect(self._address_of_analysis(file), 303)
        check = ["check", as_argument(file)]
        run = [RUN, as_argument(file), *([f"--{earlier}"] if earlier else [])]
        return self._start(file, check, *([run] if action == "run" else []))

    def _continue(self, request: PageRequest) -> Response:
        """Continue the run that was stopped last."""
        job = self.job
        if job is None or job.code is None:
            return redirect(f"/{self.token}/job", 303)
        return self._start(job.file, [RUN, as_argument(job.file), "--resume"])

    def _stop(self, request: PageRequest) -> Response:
        if self.job is not None:
            self.job.stop()
        return redirect(f"/{self.token}/job", 303)


def make_server(folder: Path, port: int) -> tuple[LocalPage, BaseWSGIServer]:
    """Make the page of a folder, and its server on a port of this machine, 0 for a free one.

    ConfigError where the port cannot be had.
    """
    try:
        bound = socket.create_server((HOST, port))
    except OSError as error:
        raise ConfigError(f"open: --port {port}: expected a free port, got: {error.strerror}; 0 takes any") from None
    with bound:
        port = bound.getsockname()[1]
        page = LocalPage(folder, port)
        server = make_wsgi_server(HOST, port, page, threaded=True, request_handler=QuietHandler, fd=bound.fileno())
    return page, server


def _is_same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), token.encode())


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{path.name} cannot be read as text in UTF-8: {error}.") from None
