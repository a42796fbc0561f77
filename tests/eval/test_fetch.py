"""Fetching the public AUT data: conversion, checks and faults, against a local HTTP server."""

import csv
import errno
import hashlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from eval.benchmarks import fetch, ocsai
from eval.benchmarks.fetch import OUTPUTS, SOURCES, Source, fetch_aut
from inference.errors import UserError

Row = dict[str, str]

PARTS = {
    "train": [("brick", "Door  stop", "17"), ("spoon", "a dress, for ants", "41"), ("box", "robot-costume!", "20")],
    "val": [("brick", "door stop", "15"), ("rope", "lasso", "10")],
    "test": [("brick", "doorstop", "20"), ("rope", "LASSO", "13"), ("box", "é\u00a0hat ", "50")],
}
JUDGE_HEADER = [
    "prompt",
    "completion",
    "confidence_1",
    "confidence_10",
    "confidence_2",
    "score_1",
    "score_10",
    "score_2",
]
JUDGE_CELLS = [
    ["0.5", "1.0", "0.75", "2.0", "2.1234567", "2.0"],
    ["0.25", "", "0.9999999", "1.0", "", "1.5000004"],
    ["0.25", "", "", "4.5", "", ""],
]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def prompt(thing: str, response: str) -> str:
    return f"AUT Prompt:{thing}\nResponse:{response}\nScore:\n"


def jsonl(rows: list[tuple[str, str, str]]) -> bytes:
    """Compact, ASCII only, slashes escaped: as upstream writes it."""
    records = [{"prompt": prompt(thing, text), "completion": completion} for thing, text, completion in rows]
    lines = [json.dumps(record, separators=(",", ":")).replace("/", "\\/") + "\n" for record in records]
    return "".join(lines).encode()


def table(header: list[str], rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    return text.getvalue().encode()


def small_upstream() -> dict[str, bytes]:
    """Source name → content, hand-made."""
    cells = zip(PARTS["test"], JUDGE_CELLS, strict=True)
    judge = table(JUDGE_HEADER, [[prompt(thing, text), rating, *rest] for (thing, text, rating), rest in cells])
    return {part: jsonl(rows) for part, rows in PARTS.items()} | dict.fromkeys(ocsai.JUDGES, judge)


class Server:
    """Serves `files` (path → content); counts requests; `faults` (path → handlers) go first, one a request."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.faults: dict[str, list[Callable[[BaseHTTPRequestHandler, bytes], None]]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, format: str, *args: object) -> None:
                del format, args

        self.httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.httpd.server_port}"

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        self.requests.append(handler.path)
        content = self.files.get(handler.path)
        if content is None:
            handler.send_error(404)
        elif self.faults.get(handler.path):
            self.faults[handler.path].pop(0)(handler, content)
        else:
            send(handler, content, len(content))

    def publish(self, upstream: dict[str, bytes]) -> dict[str, Source]:
        self.files = {f"/{SOURCES[name].path}": content for name, content in upstream.items()}
        return {name: Source(SOURCES[name].path, sha256(content)) for name, content in upstream.items()}


def send(handler: BaseHTTPRequestHandler, content: bytes, announced: int) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(announced))
    handler.end_headers()
    handler.wfile.write(content)


def cut(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    send(handler, content[: len(content) // 2], len(content))


def busy(handler: BaseHTTPRequestHandler, content: bytes) -> None:
    del content
    handler.send_error(503)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(fetch, "FIRST_WAIT_S", 0.01)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    server = Server()
    thread = threading.Thread(target=server.httpd.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.httpd.shutdown()
    thread.join()
    server.httpd.server_close()


def test_pinned_sources_are_the_published_ones() -> None:
    assert list(SOURCES) == ["train", "val", "test", *ocsai.JUDGES]
    assert all(
        source.path.startswith("massivetexts/ocsai/db5a3ee43c7e19bbcabdc0b0ac0ee8d6e51f9276/")
        for source in SOURCES.values()
    )
    assert SOURCES["test"] == Source(
        "massivetexts/ocsai/db5a3ee43c7e19bbcabdc0b0ac0ee8d6e51f9276/data/ocsai1/finetune-gt_main2_prepared_test.jsonl",
        "bab9bf8fc28c27113a7d4d55e8f718edbad02214d14d53d98e8c78f07b3a4068",
    )


def expected_small() -> dict[str, str]:
    """File name → content for `small_upstream`."""
    rows = [row for part in ("train", "val", "test") for row in PARTS[part]]
    ids = ["aut-" + hashlib.sha1(f"{thing}\t{text}".encode()).hexdigest()[:12] for thing, text, _ in rows]
    lines = [
        f"{ids[0]},brick,Door  stop,1.7",
        f'{ids[1]},spoon,"a dress, for ants",4.1',
        f"{ids[2]},box,robot-costume!,2.0",
        f"{ids[3]},brick,door stop,1.5",
        f"{ids[4]},rope,lasso,1.0",
        f"{ids[5]},brick,doorstop,2.0",
        f"{ids[6]},rope,LASSO,1.3",
        f"{ids[7]},box,é\u00a0hat ,5.0",
    ]
    splits = ["train", "", "train", "val", "val", "test", "test", "test"]
    rated = "id,object,response,originality"
    files = {
        "ocsai1_train.csv": [rated, *lines[:3]],
        "ocsai1_val.csv": [rated, *lines[3:5]],
        "ocsai1_test.csv": [rated, *lines[5:]],
        "byprompt_train.csv": [
            f"{rated},ocsai1_split",
            *(f"{line},{split}" for line, split in zip(lines, splits, strict=True) if split),
        ],
        "overlap.csv": [
            "id,file,matches_in,kind,n_matches,first_match_id",
            f"{ids[3]},ocsai1_val,ocsai1_train,norm,1,{ids[0]}",
            f"{ids[5]},ocsai1_test,ocsai1_train,alnum,1,{ids[0]}",
            f"{ids[5]},ocsai1_test,ocsai1_val,alnum,1,{ids[3]}",
            f"{ids[6]},ocsai1_test,ocsai1_val,norm,1,{ids[4]}",
        ],
        "peers_ocsai1_test.csv": [
            "id," + ",".join(f"{judge}_top,{judge}_weighted" for judge in ocsai.JUDGES),
            ids[5] + ",2.0,2.123457" * 5,
            ids[6] + ",1.0,1.5" * 5,
            ids[7] + ",4.5,4.5" * 5,
        ],
        "peers_ocsai1_test_confidence.csv": [
            "id," + ",".join(f"{judge}_top_conf,{judge}_weighted_conf" for judge in ocsai.JUDGES),
            ids[5] + ",0.5,1.0" * 5,
            ids[6] + ",0.25,1.0" * 5,
            ids[7] + ",0.25,0.25" * 5,
        ],
    }
    return {name: "".join(f"{line}\n" for line in content) for name, content in files.items()}


def small_outputs() -> dict[str, tuple[str, ...]]:
    return {name: (sha256(text.encode()),) for name, text in expected_small().items()}


def test_writes_the_csv_files_and_leaves_right_ones_alone(tmp_path: Path, server: Server) -> None:
    sources = server.publish(small_upstream())
    lines: list[str] = []
    paths = fetch_aut(tmp_path, server.url + "/", sources=sources, outputs=small_outputs(), say=lines.append)
    assert {path.name: path.read_text(encoding="utf-8") for path in paths} == expected_small()
    assert sorted(path.name for path in (tmp_path / "aut").iterdir()) == sorted(expected_small())
    assert len(lines) == 9
    assert lines[-1].endswith("7 files written, 0 were there already")

    paths[4].unlink()
    before = {path: path.stat().st_mtime_ns for path in paths if path.exists()}
    assert fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs()) == paths
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert paths[4].read_text(encoding="utf-8") == expected_small()["overlap.csv"]

    requests = len(server.requests)
    assert fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs()) == paths
    assert len(server.requests) == requests


def test_a_different_file_is_not_overwritten(tmp_path: Path, server: Server) -> None:
    sources = server.publish(small_upstream())
    mine = tmp_path / "aut" / "ocsai1_val.csv"
    mine.parent.mkdir()
    mine.write_text("my own work")
    with pytest.raises(UserError, match=r"ocsai1_val\.csv: differs from the published data .* move it away"):
        fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert mine.read_text() == "my own work"
    assert server.requests == []


@pytest.mark.parametrize("fault", [cut, busy])
def test_passing_faults_are_retried(tmp_path: Path, server: Server, fault: Callable[..., None]) -> None:
    sources = server.publish(small_upstream())
    path = f"/{SOURCES['train'].path}"
    server.faults[path] = [fault] * (fetch.ATTEMPTS - 1)
    fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert server.requests.count(path) == fetch.ATTEMPTS


@pytest.mark.parametrize(
    ("fault", "said"), [(cut, "the connection broke .*more expected"), (busy, "the server answered 503")]
)
def test_lasting_faults_end(tmp_path: Path, server: Server, fault: Callable[..., None], said: str) -> None:
    sources = server.publish(small_upstream())
    path = f"/{SOURCES['gpt-4o'].path}"
    server.faults[path] = [fault] * 100
    with pytest.raises(UserError, match=f"logprobs_gpt-4o_ocsai1.csv: {said}.*{fetch.ATTEMPTS} times"):
        fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert server.requests.count(path) == fetch.ATTEMPTS
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_is_not_retried(tmp_path: Path, server: Server) -> None:
    sources = server.publish(small_upstream())
    path = f"/{SOURCES['val'].path}"
    del server.files[path]
    with pytest.raises(UserError, match=r"prepared_val\.jsonl: the server answered 404"):
        fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert server.requests.count(path) == 1
    assert list(tmp_path.iterdir()) == []


def test_an_altered_file_is_refused_with_both_hashes(tmp_path: Path, server: Server) -> None:
    sources = server.publish(small_upstream())
    altered = small_upstream()["test"].replace(b'"20"', b'"21"')
    server.files[f"/{SOURCES['test'].path}"] = altered
    with pytest.raises(UserError) as caught:
        fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert "prepared_test.jsonl" in str(caught.value)
    assert sha256(altered) in str(caught.value)
    assert sources["test"].sha256 in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_conversion_is_not_written(tmp_path: Path, server: Server) -> None:
    sources = server.publish(small_upstream())
    with pytest.raises(UserError, match=r"ocsai1_train\.csv: the conversion gave SHA-256"):
        fetch_aut(tmp_path, server.url, sources=sources)
    assert list(tmp_path.iterdir()) == []


def test_no_network(tmp_path: Path, server: Server) -> None:
    server.httpd.server_close()
    with pytest.raises(UserError, match=r"no connection .* check the network or give a mirror"):
        fetch_aut(tmp_path, server.url, outputs=small_outputs())


@pytest.mark.parametrize(
    "address", ["file:///etc", "ftp://host", "host/path", "http://", "http://host:port", "http://a b"]
)
def test_a_wrong_address_is_refused(tmp_path: Path, address: str) -> None:
    with pytest.raises(UserError, match="is no address of a mirror"):
        fetch_aut(tmp_path, address)


@pytest.mark.parametrize("address", ["http://a..b/", "http://127.0.0.1:9/ä", f"http://{'a' * 64}.b", "http://a/\x07"])
def test_an_address_that_cannot_be_asked_for_is_refused_at_once(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("waits before another attempt"))
    with pytest.raises(UserError, match=r"cannot be asked for .* percent-encoded"):
        fetch_aut(tmp_path, address)


def test_a_failed_fetch_leaves_no_folders_but_those_that_were_there(tmp_path: Path) -> None:
    with pytest.raises(UserError):
        fetch_aut(tmp_path / "new" / "data", "http://a..b/")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "data" / "aut").mkdir(parents=True)
    with pytest.raises(UserError):
        fetch_aut(tmp_path / "data", "http://a..b/")
    assert list((tmp_path / "data").iterdir()) == [tmp_path / "data" / "aut"]


def test_a_full_disk(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = server.publish(small_upstream())

    def full(self: Path, _: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(UserError, match=r"the disk is full; .* --out"):
        fetch_aut(tmp_path, server.url, sources=sources, outputs=small_outputs())
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="data"):
        fetch_aut(tmp_path / "data")


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"prompt": "x"}',
        '{"prompt": "x", "completion": "12"}',
        '{"prompt": "AUT Prompt:a\\nResponse:b\\nScore:\\n", "completion": "high"}',
    ],
)
def test_malformed_records_name_their_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "train.jsonl"
    path.write_bytes(jsonl(PARTS["val"]) + line.encode() + b"\n")
    with pytest.raises(UserError, match=r"train\.jsonl: line 3"):
        ocsai.read_rated(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (table(["prompt", "score"], []), "columns prompt and score_1"),
        (table(["prompt", "score_1"], [[prompt("brick", "doorstop"), "1"]]), "1 rows, where the test file has 3"),
        (table(["prompt", "score_1"], [[prompt("brick", "doorstop"), "1"]] * 3), "row 2 is not the response of row 2"),
        (table(["prompt", "score_1"], [[prompt("brick", "doorstop"), "x"]] * 3), "row 1: a score is not a number"),
    ],
)
def test_malformed_predictions_are_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "judge.csv").write_bytes(content)
    test = [ocsai.Row(ocsai.row_id(thing, text), thing, text, "1.0") for thing, text, _ in PARTS["test"]]
    with pytest.raises(UserError, match=rf"judge\.csv.*{said}"):
        ocsai.peers_csv(test, {"judge": tmp_path / "judge.csv"})


def read(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rebuilt_upstream(folder: Path) -> dict[str, bytes]:
    """Upstream's form of the real CSV files. Every seventh row lacks its last two scores."""
    parts = {part: read(folder / f"ocsai1_{part}.csv") for part in ("train", "val", "test")}
    upstream = {
        part: jsonl([(row["object"], row["response"], row["originality"].replace(".", "")) for row in rows])
        for part, rows in parts.items()
    }
    published = {
        ("score", ""): read(folder / "peers_ocsai1_test.csv"),
        ("confidence", "_conf"): read(folder / "peers_ocsai1_test_confidence.csv"),
    }
    for judge in ocsai.JUDGES:
        largest = 5 if judge in ("ocsai-babbage2", "ocsai-davinci2") else 20
        header = ["prompt", *(f"{kind}_{n}" for kind, _ in published for n in range(1, largest + 1))]
        lines = [[prompt(row["object"], row["response"])] for row in parts["test"]]
        for (_, ending), rows in published.items():
            for index, row in enumerate(rows):
                empty = 2 if index % 7 == 0 else 0
                top, weighted = row[f"{judge}_top{ending}"], row[f"{judge}_weighted{ending}"]
                lines[index] += [top, *["3.3"] * (largest - 2 - empty), weighted, *[""] * empty]
        upstream[judge] = table(header, lines)
    return upstream


def test_rebuilt_upstream_files_give_the_pinned_files(tmp_path: Path, server: Server) -> None:
    data = Path(os.environ.get("CREAJUDGE_DATA", "data"))
    if not (data / "aut" / "peers_ocsai1_test.csv").exists() or not (data / "MANIFEST.json").exists():
        pytest.skip("needs the real AUT data and its MANIFEST.json in the folder CREAJUDGE_DATA")
    sources = server.publish(rebuilt_upstream(data / "aut"))
    paths = fetch_aut(tmp_path, server.url, sources=sources)
    manifest = json.loads((data / "MANIFEST.json").read_text())
    assert [path.name for path in paths] == list(OUTPUTS)
    for path in paths:
        assert manifest[f"aut/{path.name}"]["sha256"] in OUTPUTS[path.name]
        if path.name != "overlap.csv":
            assert path.read_bytes() == (data / "aut" / path.name).read_bytes()
    whole = (data / "aut" / "overlap.csv").read_text()
    written = (tmp_path / "aut" / "overlap.csv").read_text()
    assert whole.startswith(written)
    assert all(",byprompt_test,byprompt_train," in line for line in whole[len(written) :].splitlines())
