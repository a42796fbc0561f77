#!/usr/bin/env bash
# Makes .venv in the repository root with everything creajudge needs, pinned; does nothing where that is done already.
#
#   bash scripts/setup.sh [--base-model]
#
# A machine where nvidia-smi works gets scripts/requirements/gpu.txt, any other torch-cpu.txt and cpu.txt.
# --base-model also writes the embedded base model to models/smollm2-135m. PYTHON=python3.12 names another interpreter.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

python=${PYTHON:-python3}
requirements=scripts/requirements
stamp=.venv/setup.stamp
log=.venv/setup.log

fail() {
    echo "error: $*" >&2
    exit 1
}

fingerprint() { # of what .venv holds: pins, project metadata, kind of machine, interpreter, place
    {
        cat $requirements/*.txt pyproject.toml
        echo "$kind $PWD"
        .venv/bin/python -V 2>&1 || true
    } | sha256sum
}

python_version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

check_python() {
    version=$(python_version "$python") ||
        fail "there is no working $python: install Python 3.11 to 3.13 (Debian: sudo apt-get install -y python3 python3-venv)."
    case $version in
        3.11 | 3.12 | 3.13) ;;
        *) fail "$python is Python $version, but Python 3.11 to 3.13 is needed: install one and name it, as in PYTHON=python3.12 bash scripts/setup.sh." ;;
    esac
}

check_machine() { # free disk counts what .venv already takes
    local needed=8 free memory
    if [ "$kind" = gpu ]; then needed=25; fi
    free=$(df -Pk . | awk 'NR == 2 {print $4}')
    if [ -d .venv ]; then free=$((free + $(du -sk .venv | cut -f1))); fi
    free=$((free * 1024 / 1000000000))
    [ "$free" -ge $needed ] ||
        fail "$free GB of disk are free in $PWD, but set-up needs $needed GB: free some, or clone the repository to a larger disk."
    memory=$(($(getconf _PHYS_PAGES) * $(getconf PAGE_SIZE) / 1000000))
    [ $memory -ge 6000 ] ||
        fail "this machine has $((memory / 1000)) GB of memory, but training and serving the small model need at least 6 GB: use a larger machine."
    [ $memory -ge 8000 ] || echo "warning: less than 8 GB of memory; close other programs while a model is served." >&2
}

need_debian() { # PURPOSE PACKAGE...: installed as root, else the command to run
    local purpose=$1 messages
    shift
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "set-up: installing the Debian packages $* for $purpose"
        if messages=$({ apt-get update && apt-get install -y --no-install-recommends "$@"; } 2>&1); then return; fi
        echo "$messages" | tail -n 5 >&2
    fi
    fail "$purpose needs the system packages $*: install them (Debian: sudo apt-get install -y $*), then run bash scripts/setup.sh again."
}

make_venv() {
    # A moved .venv is made anew: its commands name the interpreter by the old path.
    if grep -qsF "$PWD/.venv" .venv/pyvenv.cfg && [ "$(python_version .venv/bin/python)" = "$version" ] &&
        .venv/bin/python -m pip --version >/dev/null 2>&1; then return; fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || need_debian "a virtual environment" "python$version-venv"
    echo "set-up: making .venv with Python $version"
    "$python" -m venv --clear .venv || fail "$python could not make .venv in $PWD: see its message above."
}

check_libraries() { # vLLM compiles kernels at its first start, and its CPU build links libnuma
    local missing=()
    command -v g++ >/dev/null || missing+=(g++)
    .venv/bin/python -c 'import pathlib, sysconfig; pathlib.Path(sysconfig.get_path("include"), "Python.h").stat()' 2>/dev/null ||
        missing+=("python$version-dev")
    if [ "$kind" = cpu ]; then
        .venv/bin/python -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null || missing+=(libnuma1)
    fi
    [ ${#missing[@]} -eq 0 ] || need_debian vLLM "${missing[@]}"
}

try_pip() {
    .venv/bin/python -m pip "$@" >>"$log" 2>&1
}

pip_failed() {
    tail -n 15 "$log" >&2
    fail "pip could not install $1 (its last lines above, all of them in $log): check the network or your package index (.venv/bin/pip config list), then run bash scripts/setup.sh again, it goes on where it stopped."
}

install_cpu() {
    local options=(install --no-input --progress-bar off --no-deps --timeout 30 --retries 2)
    local pytorch=https://download.pytorch.org/whl/cpu
    echo "set-up: installing torch (CPU build, about 200 MB)"
    # The +cpu in the pin keeps PyPI's CUDA build out: where pip's own index or wheel folder lacks the CPU build, pip says so at once.
    try_pip "${options[@]}" -r $requirements/torch-cpu.txt ||
        try_pip "${options[@]}" --index-url $pytorch -r $requirements/torch-cpu.txt ||
        pip_failed "torch's CPU build, which is in no index of yours and could not be had from $pytorch"
    echo "set-up: installing the other packages (about 1 GB)"
    try_pip "${options[@]}" -r $requirements/cpu.txt || pip_failed "the packages of $requirements/cpu.txt"
}

install_gpu() {
    echo "set-up: installing torch, vLLM and the other packages for a GPU (about 8 GB)"
    try_pip install --no-input --progress-bar off -r $requirements/gpu.txt || pip_failed "the packages of $requirements/gpu.txt"
}

remove_broken() { # a media package that fails to import beside this torch breaks transformers and vLLM, its absence does not
    local module
    for module in torchvision torchaudio torchcodec; do
        if compgen -G ".venv/lib/python3*/site-packages/$module" >/dev/null && ! .venv/bin/python -c "import $module" >>"$log" 2>&1; then
            echo "set-up: removing $module, which does not import beside this torch"
            try_pip uninstall -y $module || pip_failed "without $module"
        fi
    done
}

check_torch() {
    local build
    build=$(.venv/bin/python -c 'import torch; print("gpu" if torch.version.cuda else "cpu")' 2>>"$log") || pip_failed "a torch that imports"
    [ "$build" = "$kind" ] ||
        fail "this is a $kind machine, but the installed torch is a $build build: remove .venv, check your package index, and run bash scripts/setup.sh again."
}

set_up() {
    check_python
    check_machine
    make_venv
    : >"$log"
    check_libraries
    "install_$kind"
    remove_broken
    try_pip install --no-input --no-deps --no-build-isolation -e . || pip_failed "creajudge itself"
    check_torch
    fingerprint >"$stamp"
    echo "set-up: .venv is ready ($kind)"
}

base_model=no
case "$*" in
    "") ;;
    --base-model) base_model=yes ;;
    *) fail "unknown arguments '$*': the only option is --base-model." ;;
esac
kind=cpu
if nvidia-smi >/dev/null 2>&1; then kind=gpu; fi
if [ ! -f $stamp ] || [ "$(fingerprint)" != "$(cat $stamp)" ]; then set_up; fi
if [ $base_model = yes ]; then .venv/bin/python scripts/base_model.py; fi
