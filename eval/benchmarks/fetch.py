"""Download the public AUT data (MIT, github.com/massivetexts/ocsai), check it, and write it as the project's CSV files.

    python -m eval data fetch aut --out data        # writes data/aut/*.csv

Not rebuilt: ``byprompt_test.csv`` and ``peers_byprompt_test.csv``, and the rows of ``overlap.csv`` about them.
"""

import errno
import hashlib
import http.client
import os
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from eval.benchmarks import ocsai
from inference.errors import UserError

HOST = "https://raw.githubusercontent.com"
ATTEMPTS = 4
FIRST_WAIT_S = 1.0
"""Seconds before the second attempt; doubled before each further one."""
TIMEOUT_S = 30.0
CHUNK = 1 << 16

_ROOT = "massivetexts/ocsai/db5a3ee43c7e19bbcabdc0b0ac0ee8d6e51f9276/data"


class Source(NamedTuple):
    """An upstream file: its path below the host, and the SHA-256 hex digest of its content."""

    path: str
    sha256: str


def _rated(part: str, sha256: str) -> Source:
    return Source(f"{_ROOT}/ocsai1/finetune-gt_main2_prepared_{part}.jsonl", sha256)


def _judge(name: str, sha256: str) -> Source:
    return Source(f"{_ROOT}/results/logprobs/logprobs_{name}_ocsai1.csv", sha256)


SOURCES: Mapping[str, Source] = {
    "train": _rated("train", "7b2ed8fb8a1b3c98dbb86428c222c5806870ab73a280d6e664aee137bf05ddfd"),
    "val": _rated("val", "a40bc78a5275ad274baeac7f410f7c1beb37e7913b138f5ef5fcfee8e15ccd9b"),
    "test": _rated("test", "bab9bf8fc28c27113a7d4d55e8f718edbad02214d14d53d98e8c78f07b3a4068"),
    "gpt-4o": _judge("gpt-4o", "75537feec8aee7c1bcd9f7d4ac724269473df2cb080018b97c1c8e04cd455466"),
    "gpt-4o-mini": _judge("gpt-4o-mini", "78508238d790a0f078a8db401d3a03b8ea4387321e92ca59769406505e6973a1"),
    "ocsai-chatgpt": _judge("ocsai-chatgpt", "d27dbd314cadc185fe6a0d20f8579d5b09276bbf5dde7a70b2b46cc4b9cb03ff"),
    "ocsai-babbage2": _judge("ocsai-babbage2", "422270d5e1fa86a4276defb1fbb1fd50c3bb0aceaa2216f285be890a4d6c4658"),
    "ocsai-davinci2": _judge("ocsai-davinci2", "862f708aaf2c531c425f26499c1472ec11b9619b25a2d92850a58f0e76b5d173"),
}
"""Parts of the random split, then judges."""

OUTPUTS: Mapping[str, tuple[str, ...]] = {
    "ocsai1_train.csv": ("e8f7556292b98b295f254d9710b9130d30c1e85206ed4cb024c4e34b1e2554c4",),
    "ocsai1_val.csv": ("94a83e5fd99bcfd0cb14e5cfd3fec430c1b4bf885868f1cc6d972ed85d9675cb",),
    "ocsai1_test.csv": ("3c3b9782756973566bdd4507c72c79a1891b4c82fb171d740cb99c477221175f",),
    "byprompt_train.csv": ("dd928124780b64eab9824cf89c03ab5d79b6c96086ff12e5df02cdfbfdbc1c98",),
    "overlap.csv": (
        "0c3c304d498ad252174a358c630b4b44b06e871844812bb6e1e04bde4f23c5d1",
        "eaca5b5ce29464efc44278a143442209ad71deba560f39e52221617500c495c8",  # with the rows about byprompt_test.csv
    ),
    "peers_ocsai1_test.csv": ("cfcae33e3b3ad504b85bcb88838faf7b9d12b619f6372d3b3deb7a36fbec911e",),
    "peers_ocsai1_test_confidence.csv": ("cb6a95ab6a9e460694d112682e9a5300493c54e7ca51cb50259698ab6e96e594",),
}
"""File → the SHA-256 digests under which it counts as right."""

NOT_REBUILT = (
    "byprompt_test.csv and peers_byprompt_test.csv (the published test on unseen objects) are not rebuilt from "
    "massivetexts/llm_aut_study; overlap.csv has no rows about them"
)


def fetch_aut(
    out: Path,
    base_url: str | None = None,
    *,
    sources: Mapping[str, Source] = SOURCES,
    outputs: Mapping[str, tuple[str, ...]] = OUTPUTS,
    say: Callable[[str], None] = lambda _: None,
) -> list[Path]:
    """Write the files of `outputs` into ``out/aut`` and return their paths, those that were there already included.

    `base_url` replaces https://raw.githubusercontent.com by a mirror with the same paths. `say` is told what happens.
    Files appear whole or not at all, and only once everything is downloaded and checked.
    Raises UserError: no network, a missing or altered upstream file, a file in the way, no space or no right to write.
    """
    folder = out / "aut"
    missing = [name for name, digests in outputs.items() if not _is_right(folder / name, digests)]
    if missing:
        try:
            with _made(folder), tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
                downloads = _download_all(sources, base_url or HOST, Path(scratch), say)
                contents = _convert(downloads)
                _write({name: contents[name] for name in missing}, outputs, Path(scratch), folder)
        except OSError as error:
            raise UserError(_disk_fault(folder, error)) from None
    say(f"{folder}: {len(missing)} files written, {len(outputs) - len(missing)} were there already")
    return [folder / name for name in outputs]


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    """`folder` exists; after a fault the folders that were made for it are gone again."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        with suppress(OSError):  # not made after all, or somebody else's files have come
            for path in new:
                path.rmdir()
        raise


def _is_right(path: Path, digests: tuple[str, ...]) -> bool:
    """False where the file is absent. A different file is somebody's own and is not overwritten."""
    try:
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); move it away, then fetch again") from None
    if found not in digests:
        raise UserError(
            f"{path}: differs from the published data (SHA-256 {found}, expected {digests[0]}); "
            "move it away, then fetch again"
        )
    return True


def _write(contents: Mapping[str, bytes], outputs: Mapping[str, tuple[str, ...]], scratch: Path, folder: Path) -> None:
    """Check and write everything beside its place first, then move it there."""
    for name, content in contents.items():
        found = hashlib.sha256(content).hexdigest()
        if found not in outputs[name]:
            raise UserError(
                f"{name}: the conversion gave SHA-256 {found}, expected {outputs[name][0]}, though the download was "
                "right; nothing was written. Please report this as a bug of creajudge"
            )
        (scratch / name).write_bytes(content)
    for name in contents:
        os.replace(scratch / name, folder / name)


def _download_all(
    sources: Mapping[str, Source], base_url: str, scratch: Path, say: Callable[[str], None]
) -> dict[str, Path]:
    _check_address(base_url)
    downloads = {}
    for name, source in sources.items():
        url = f"{base_url.rstrip('/')}/{source.path}"
        say(f"downloading {url}")
        downloads[name] = scratch / source.path.rpartition("/")[2]
        found = _download(url, downloads[name])
        if found != source.sha256:
            raise UserError(
                f"{url}: the download has SHA-256 {found}, expected {source.sha256}; nothing was written. "
                "A proxy or mirror may have altered it: try another network or another mirror"
            )
    return downloads


def _check_address(base_url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(base_url)
        _ = parts.port  # raises ValueError where it is not a number
        usable = parts.scheme in ("http", "https") and parts.hostname and not re.search(r"\s", base_url)
    except ValueError:
        usable = False
    if not usable:
        raise UserError(
            f"{base_url!r} is no address of a mirror; one like http://host:8000 or https://host/path is needed"
        )


def _convert(downloads: Mapping[str, Path]) -> dict[str, bytes]:
    """File name → content, from the checked downloads."""
    parts = {part: ocsai.read_rated(downloads[part]) for part in ("train", "val", "test")}
    contents = {f"ocsai1_{part}.csv": ocsai.rated_csv(rows) for part, rows in parts.items()}
    contents["byprompt_train.csv"] = ocsai.byprompt_train_csv(parts)
    contents["overlap.csv"] = ocsai.overlap_csv(parts)
    scores, confidences = ocsai.peers_csv(parts["test"], {judge: downloads[judge] for judge in ocsai.JUDGES})
    return contents | {"peers_ocsai1_test.csv": scores, "peers_ocsai1_test_confidence.csv": confidences}


def _download(url: str, target: Path) -> str:
    """Stream `url` into `target`, retrying what may pass. Returns the SHA-256 hex digest of the content."""
    wait = FIRST_WAIT_S
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return _stream(url, target)
        except (UnicodeError, http.client.InvalidURL) as error:
            raise UserError(
                f"{url!r} cannot be asked for ({error}); give a mirror with a valid host name and an address in ASCII, "
                "other characters percent-encoded"
            ) from None
        except urllib.error.HTTPError as error:
            fault = f"the server answered {error.code} {error.reason}"
            error.close()
            if error.code not in (408, 429) and error.code < 500:
                raise UserError(f"{url}: {fault}; the file is not there, give a mirror that has it") from None
        except urllib.error.URLError as error:
            fault = f"no connection ({error.reason})"
        except (http.client.HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
            fault = f"the connection broke ({error or type(error).__name__})"
        if attempt < ATTEMPTS:
            time.sleep(wait)
            wait *= 2
    raise UserError(f"{url}: {fault}, {ATTEMPTS} times; check the network or give a mirror")


def _stream(url: str, target: Path) -> str:
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response, target.open("wb") as file:
        while chunk := response.read(CHUNK):
            digest.update(chunk)
            file.write(chunk)
        # Reading by chunks does not notice an early end by itself.
        if response.length:
            raise http.client.IncompleteRead(b"", response.length)
    return digest.hexdigest()


def _disk_fault(folder: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{folder}: the disk is full; about 30 MB are needed, free some space or choose another folder with --out"
        )
    return f"{folder}: cannot be written ({error.strerror or error}); choose another folder with --out"
