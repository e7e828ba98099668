"""Who the server answers, and what with: other sites, other users, other files are refused, and text is escaped."""

import re
import socket
from html import unescape
from urllib.parse import quote

import pytest
from helpers.small_analysis import write_files

pytest.importorskip("werkzeug", reason="needs werkzeug: pip install werkzeug")
from werkzeug.test import Client

from mmgibbs.cli import main
from mmgibbs.errors import ConfigError
from mmgibbs.local_page import command, server
from mmgibbs.local_page.files import find_inside, find_run_folder, list_files, name_new_analysis
from mmgibbs.local_page.server import HOST, LocalPage, make_server
from mmgibbs.report.running import ChainProgress, Running, read_progress, write_running

PORT = 8123
ELSEWHERE = "http://attacker.example"


class NoJob:
    """In place of a job: records what would be started."""

    code, is_stopped, command, is_run = None, False, "check", False

    def __init__(self, folder, file, commands):
        self.file, self.commands, self.words, self.elapsed = file, commands, ["mmgibbs", *commands[0]], "0:00:00"

    def wait(self, seconds):
        pass

    def stop(self):
        self.is_stopped = True

    def read_output(self):
        return "warning: <b>of a file</b>\nread"


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "herd"
    place.mkdir()
    write_files(place)
    (tmp_path / "secret.yaml").write_text("name: secret\n")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "report.html").write_text("secret")
    return place


@pytest.fixture
def page(folder, monkeypatch):
    monkeypatch.setattr(server, "Job", NoJob)
    return LocalPage(folder.resolve(), PORT)


def ask(page, path="", method="GET", token=None, host=f"{HOST}:{PORT}", data=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()} | {"Host": host}
    address = f"/{page.token if token is None else token}/{path}"
    return Client(page, use_cookies=False).open(address, method=method, headers=headers, data=data, buffered=True)


def form_of(page, file="analysis.yaml", **more):
    text = ask(page, f"analysis?file={file}").get_data(as_text=True)
    shown = re.search(r'name="shown" value="(\w+)"', text)[1]
    area = text.partition("<textarea")[2].partition(">\n")[2].partition("</")[0]
    return {"file": file, "shown": shown, "text": unescape(area), "earlier": "", "action": "save", **more}


def files_of(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# ---------------------------------------------------------------------------------------------------- who may ask


def test_the_page_is_for_who_has_the_token(page):
    assert ask(page).status_code == 200
    for token in ("", "x", page.token[:-1], page.token + "x", "é" * 43, page.token.swapcase()):
        answer = ask(page, token=token)
        assert answer.status_code == 404 and page.token not in answer.get_data(as_text=True), token
    assert Client(page).get("/", headers={"Host": f"{HOST}:{PORT}"}).status_code == 404


def test_the_token_is_random_and_long(folder):
    tokens = {
        t for _ in range(20) for t in (lambda p: (p.token, p._token_of_files, p._used_once))(LocalPage(folder, 1))
    }
    assert len(tokens) == 60 and min(map(len, tokens)) >= 43


HOSTS = ["attacker.example", f"attacker.example:{PORT}", HOST, "localhost", f"{HOST}:{PORT + 1}", f"[::1]:{PORT}", ""]


@pytest.mark.parametrize("host", [*HOSTS, f"{HOST}.attacker.example:{PORT}"])
def test_a_name_that_leads_here_is_refused(page, host):
    assert ask(page, host=host).status_code == 403
    assert ask(page, host=f"localhost:{PORT}").status_code == 200


@pytest.mark.parametrize("headers", [
    {"Origin": ELSEWHERE}, {"Origin": "null"}, {"Origin": f"http://{HOST}:{PORT + 1}"}, {"Origin": f"https://{HOST}:{PORT}"},
    {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_another_site_is_refused(page, method, headers):
    for path in ("", "analysis?file=analysis.yaml", "stop", "draft"):
        assert ask(page, path, method, **headers).status_code == 403
    assert page.job is None
    assert ask(page, Origin=f"http://{HOST}:{PORT}", Sec_Fetch_Site="same-origin").status_code == 200


def test_nothing_is_done_but_by_post(page, folder):
    before = files_of(folder)
    for path in ("stop", "draft", "continue"):
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            assert ask(page, path, method).status_code == 405
    for path in ("analysis?file=analysis.yaml&action=run&text=x", "analysis?file=analysis.yaml&action=save&text=x"):
        assert ask(page, path).status_code == 200
    assert ask(page, "job", "POST").status_code == 405 and ask(page, "nothing").status_code == 404
    assert page.job is None and files_of(folder) == before


def test_the_address_of_the_browser_is_good_once(page):
    address = page.address_used_once.removeprefix(f"http://{HOST}:{PORT}")
    get = lambda: Client(page).get(address, headers={"Host": f"{HOST}:{PORT}"})
    first, second = get(), get()
    assert first.status_code == 303 and first.headers["Location"] == page.address and second.status_code == 404


def test_headers_of_the_page_and_of_files(page, folder):
    (folder / "runs" / "x").mkdir(parents=True)
    (folder / "runs" / "x" / "report.html").write_text("<h1>report</h1>")
    shown, sent = ask(page), ask(page, "runs/x/report.html", token=page._token_of_files)
    assert sent.status_code == 200 and sent.content_type.startswith("text/html")
    for answer in (shown, sent, ask(page, token="wrong"), ask(page, host="x")):
        assert answer.headers["X-Content-Type-Options"] == "nosniff" and answer.headers["Cache-Control"] == "no-store"
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert (
            len(answer.headers.getlist("Content-Security-Policy"))
            == len(answer.headers.getlist("Referrer-Policy"))
            == 1
        )
    assert "sandbox" in sent.headers["Content-Security-Policy"] and sent.headers["Referrer-Policy"] == "no-referrer"
    assert "allow-same-origin" not in sent.headers["Content-Security-Policy"]
    nonces = {re.search(r"'nonce-([\w-]+)'", ask(page).headers["Content-Security-Policy"])[1] for _ in range(3)}
    assert len(nonces) == 3


def test_a_report_has_no_way_to_the_page(page, folder):
    """Its token opens files of runs alone; it may load itself again, and be in no frame."""
    (folder / "runs").mkdir()
    (folder / "runs" / "report.html").write_text("report")
    get = lambda path, **more: ask(page, path, token=page._token_of_files, **more).status_code
    assert get("runs/report.html") == 200
    for path in ("", "job", "yaml?file=analysis.yaml", "analysis?file=analysis.yaml"):
        assert get(path) == 404
    assert get("runs/report.html", method="POST") == 405
    assert get("runs/report.html", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest="document") == 200
    for kind in ("iframe", "empty", "script", "image"):
        assert get("runs/report.html", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest=kind) == 403


# ------------------------------------------------------------------------------------------------- which files

OUTSIDE = ["../secret.yaml", "..", "", ".", "x/../../secret.yaml", "/etc/passwd", "link.yaml", "linked/x.yaml",
           ".hidden.yaml", ".git/config.yaml", "a\0b.yaml", "loop.yaml",
           "..\\..\\secret.yaml/../../secret.yaml"]  # fmt: skip


def make_links(folder):
    (folder / "link.yaml").symlink_to(folder.parent / "secret.yaml")
    (folder / "linked").symlink_to(folder.parent)
    (folder / "runs").symlink_to(folder.parent / "secret")
    (folder / "loop.yaml").symlink_to(folder / "loop.yaml")
    (folder / ".hidden.yaml").write_text("name: x\n")


@pytest.mark.parametrize("name", OUTSIDE)
def test_no_other_place_is_reached(page, folder, name):
    make_links(folder)
    assert find_inside(page.folder, name) is None
    before = files_of(folder.parent)
    for path in ("analysis", "yaml"):
        assert ask(page, f"{path}?file={quote(name)}").status_code == 404
    data = {"file": name, "text": "x", "shown": "", "earlier": "", "action": "save"}
    assert ask(page, "analysis", "POST", data=data).status_code == 404
    for field in ("records", "output", *(["pedigree", "genotypes"] if name else [])):
        data = {"records": "phenotypes.csv", "output": "new.yaml"} | {field: name}
        assert ask(page, "draft", "POST", data=data).status_code == 400
    assert page.job is None and files_of(folder.parent) == before


@pytest.mark.parametrize("path", ["../secret/report.html", "%2e%2e/secret/report.html", "..%2fsecret%2freport.html",
                                  "runs/report.html", "linked/secret/report.html", "phenotypes.csv", "analysis.yaml",
                                  "", "/etc/passwd", "//etc/report.html", "x/.ssh/report.html"])  # fmt: skip
def test_only_files_of_runs_are_sent(page, folder, path):
    make_links(folder)
    (folder / "x" / ".ssh").mkdir(parents=True)
    (folder / "x" / ".ssh" / "report.html").write_text("hidden")
    assert ask(page, path, token=page._token_of_files).status_code == 404


def test_the_lists_have_what_can_be_chosen(page, folder):
    make_links(folder)
    for name in (
        "chips/a.bed",
        "chips/a.bim",
        "b.vcf.gz",
        "x.PARQUET",
        "runs2/summary.csv",
        "runs2/run.json",
        "notes.docx",
    ):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("")
    files = list_files(page.folder)
    assert files.tables == ["pedigree.csv", "phenotypes.csv", "x.PARQUET"] and files.analyses == ["analysis.yaml"]
    assert files.genotypes[:1] == ["b.vcf.gz"] and "chips/a.bed" in files.genotypes
    assert name_new_analysis(page.folder) == "analysis-2.yaml"
    text = ask(page).get_data(as_text=True)
    assert "<option selected>phenotypes.csv</option>" in text and "<option selected>pedigree.csv</option>" in text


@pytest.mark.parametrize("text, run", [
    ("name: a\n", "runs/a"), ("{}", "runs/of file"), ("output: {directory: there/b}", "there/b"),
    ("output: {directory: ../c}", "../c"), ("output: 3\nname: [1", "runs/of file"), ("- 1", "runs/of file"),
])  # fmt: skip
def test_where_an_analysis_writes(tmp_path, text, run):
    (tmp_path / "of file.yaml").write_text(text)
    assert find_run_folder(tmp_path, "of file.yaml") == (tmp_path / run).parent.resolve() / run.rpartition("/")[2]


def test_results_elsewhere_have_no_link(page, folder):
    (folder / "analysis.yaml").write_text("output: {directory: ../secret}\n")
    text = ask(page, "analysis?file=analysis.yaml").get_data(as_text=True)
    assert str(folder.parent / "secret") in text and page._token_of_files not in text


# ------------------------------------------------------------------------------------------------ what is done


def test_text_of_users_is_escaped(page, folder):
    name = '<img src=x onerror="alert(1)">&.csv'
    (folder / name).write_text("a\n1\n")
    (folder / "analysis.yaml").write_text('name: "</textarea><script>alert(1)</script>"\n# 95 % of it\n')
    shown = [ask(page, path).get_data(as_text=True) for path in ("", "analysis?file=analysis.yaml")]
    ask(page, "analysis", "POST", data=form_of(page, action="check"))
    shown += [ask(page, path).get_data(as_text=True) for path in ("job", "")]
    shown.append(
        ask(page, "draft", "POST", data={"records": name, "output": "<b>.yaml", "traits": '"<i>'}).get_data(
            as_text=True
        )
    )
    assert '<noscript><meta http-equiv="refresh"' in shown[2]  # how it follows a job where no script runs
    for text in shown:
        assert not re.search(r"<img|<b>|<i>|alert\(1\)</script>", text)
    assert unescape(name) in unescape(shown[0]) and "<b>of a file</b>" in unescape(shown[2])
    assert form_of(page)["text"].endswith("# 95 % of it\n")  # with the spaces that it has


def test_save_check_and_run(page, folder):
    form = form_of(page)
    before = (folder / "analysis.yaml").read_text()
    assert form["text"] == before
    changed = before + "# more\n"
    answer = ask(page, "analysis", "POST", data=form | {"text": changed.replace("\n", "\r\n")})
    assert (
        answer.status_code == 303 and (folder / "analysis.yaml").read_bytes() == changed.encode() and page.job is None
    )
    stale = ask(page, "analysis", "POST", data=form | {"text": "mine\n", "action": "run"})  # as it was shown before
    assert stale.status_code == 409 and "Nothing is saved" in stale.get_data(as_text=True)
    assert (
        "mine" in stale.get_data(as_text=True)
        and (folder / "analysis.yaml").read_text() == changed
        and page.job is None
    )
    answer = ask(page, "analysis", "POST", data=form_of(page, action="run", earlier="overwrite"))
    assert answer.status_code == 303
    assert page.job.commands == (["check", "analysis.yaml"], ["run", "analysis.yaml", "--overwrite"])
    busy = ask(page, "analysis", "POST", data=form_of(page, text="x", action="save"))
    assert busy.status_code == 409 and "Wait for its end" in busy.get_data(as_text=True)
    assert (folder / "analysis.yaml").read_text() == changed
    assert ask(page, "stop", "POST").status_code == 303 and page.job.is_stopped
    page.job.code = 143
    assert ask(page, "continue", "POST").status_code == 303
    assert page.job.commands == (["run", "analysis.yaml", "--resume"],)


@pytest.mark.parametrize(
    "more", [{"action": "delete"}, {"earlier": "force"}, {"file": "phenotypes.csv"}, {"file": "none.yaml"}]
)
def test_other_forms_are_refused(page, folder, more):
    before = files_of(folder)
    assert ask(page, "analysis", "POST", data=form_of(page, text="x") | more).status_code == 404
    assert files_of(folder) == before and page.job is None


def test_names_are_no_options(page, folder):
    (folder / "--output=x.yaml").write_text("a\n")
    data = {"records": "--output=x.yaml", "pedigree": "pedigree.csv", "traits": "--overwrite", "output": "-new.yaml"}
    assert ask(page, "draft", "POST", data=data).status_code == 303
    words = ["init", "./--output=x.yaml", "--pedigree=pedigree.csv", "--output=-new.yaml", "--traits=--overwrite"]
    assert page.job.commands == (words,)


def test_a_form_that_is_too_large_and_a_file_that_is_no_text(page, folder):
    assert ask(page, "analysis", "POST", data=form_of(page, text="x" * 6_000_000)).status_code == 413
    (folder / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    answer = ask(page, "analysis?file=bytes.yaml")
    assert answer.status_code == 404 and "cannot be read as text" in answer.get_data(as_text=True)


def test_the_yaml_is_downloaded(page, folder):
    answer = ask(page, "yaml?file=analysis.yaml")
    assert answer.data == (folder / "analysis.yaml").read_bytes()
    assert answer.headers["Content-Disposition"] == "attachment; filename=analysis.yaml"


def test_progress_is_read_from_the_page_of_the_run(tmp_path):
    chains = [ChainProgress("chain <1>", 700, 1200), ChainProgress("chain 2", 0, 1200)]
    path = write_running(
        Running("calves", "now", 200, chains, "0:12:30 left, done about 16:40 UTC"), tmp_path / "a.html"
    )
    assert read_progress(path) == (chains, "0:12:30 left, done about 16:40 UTC")
    (tmp_path / "b.html").write_text("<p>finished</p>")
    assert read_progress(tmp_path / "b.html") == read_progress(tmp_path / "none.html") == ([], "")


# -------------------------------------------------------------------------------------------------- the command


def test_only_this_machine_can_reach_it(folder):
    _, running = make_server(folder, 0)
    try:
        assert running.socket.getsockname() == (HOST, running.port) and running.port > 0
        with pytest.raises(ConfigError, match=f"--port {running.port}: expected a free port"):
            make_server(folder, running.port)
    finally:
        running.server_close()


def test_messages_of_the_command(tmp_path, monkeypatch, capsys):
    assert main(["open", str(tmp_path / "none"), "--no-browser"]) == 2
    assert "expected a folder, got nothing" in capsys.readouterr().err
    with socket.create_server((HOST, 0)) as taken:
        assert main(["open", str(tmp_path), "--no-browser", "--port", str(taken.getsockname()[1])]) == 2
    assert "expected a free port" in capsys.readouterr().err
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    assert main(["open", str(tmp_path)]) == 2
    assert "pip install mmgibbs[open]" in capsys.readouterr().err
