#!/usr/bin/env bash
# Sets up, checks style, types and import arrows, then runs the tests; ends with pytest's closing line.
#
#   bash scripts/test.sh [--fast] [pytest arguments]
#
# --fast leaves out the tests marked slow (real models, servers, long runs). Tests that need a GPU: -m gpu.
# Every check runs; the exit code is that of the first one that failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

marks="not gpu"
if [ "${1:-}" = --fast ]; then
    marks="not gpu and not slow"
    shift
fi

bash scripts/setup.sh --base-model || exit $?

if [ -z "${CREAJUDGE_DATA:-}" ] && [ -d ../shared/data ]; then
    CREAJUDGE_DATA=$(cd ../shared/data && pwd)
    export CREAJUDGE_DATA
fi
# Tests reach no model hub and no tracker, on any machine.
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 WANDB_MODE=offline TOKENIZERS_PARALLELISM=false
export PATH="$PWD/.venv/bin:$PATH"

code=0
check() { # COMMAND...: goes on after a failure and keeps the first exit code
    local started=$SECONDS result=0
    echo "== $*"
    "$@" || result=$?
    if [ $result -ne 0 ]; then echo "== failed with exit code $result: $*"; else echo "== passed in $((SECONDS - started)) s"; fi
    if [ $code -eq 0 ]; then code=$result; fi
}

check ruff check .
check ruff format --check .
check mypy
check lint-imports
echo "== pytest -m '$marks' $*"
python -m pytest -m "$marks" "$@"
result=$?
if [ $code -eq 0 ]; then code=$result; fi
exit $code
