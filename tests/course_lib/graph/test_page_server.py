"""A viewer's page is given with its changes, and nothing else is read."""

from http.client import HTTPConnection

import pytest

from course_lib.graph.page_server import Site, serve


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    (root / "secret.txt").write_text("a file beside the page")
    page = root / "page"
    (page / "sub").mkdir(parents=True)
    (page / "index.html").write_text("a page of old words")
    (page / "sub" / "picture.png").write_bytes(b"old bytes")
    (page / "server.py").write_text("Python's")
    (page / "link.txt").symlink_to(page / "nowhere")
    answers = {"/data/the program.pt2": b"a program of old bytes"}
    return serve(Site(page, lambda text: text.replace(b"old", b"new"), answers, "kind=any"))


def asked(port, path, method="GET"):
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request(method, path)
    reply = connection.getresponse()
    return reply.status, reply.headers["Content-Type"], reply.read()


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/", "text/html", b"a page of new words"),
        ("/index.html?asked=again", "text/html", b"a page of new words"),
        ("/sub/picture.png", "image/png", b"old bytes"),
        ("/data/the%20program.pt2?cb=1", "application/octet-stream", b"a program of old bytes"),
    ],
)
def test_page_and_answers_are_given_and_only_texts_are_changed(port, path, kind, body):
    assert asked(port, path) == (200, kind, body)
    assert asked(port, path, "HEAD") == (200, kind, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/../secret.txt",
        "/sub/../../secret.txt",
        "/%2e%2e/secret.txt",
        "//etc/passwd",
        "/server.py",
        "/link.txt",
        "/sub",
    ],
)
def test_nothing_but_the_page_is_read(port, path):
    assert asked(port, path) == (204, None, b"")


def test_only_this_machine_is_answered(port):
    with pytest.raises(OSError, match="refused"):
        HTTPConnection("127.0.0.2", port, timeout=10).request("GET", "/")
