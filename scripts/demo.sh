#!/usr/bin/env bash
# From ratings to a served local judge, compared with the prompted base model: set-up, training, vLLM, evaluation, report.
#
#   bash scripts/demo.sh [--quick]
#
# Runs on two CPU cores in at most 15 minutes once set up (--quick: a few training steps, 24 samples, at most 4 minutes).
# The data are sample ratings written for demonstration; the figures show that it works, not how well people are met.
set -euo pipefail
cd -P "$(dirname "${BASH_SOURCE[0]}")/.."

training=() evaluation=()
case "$*" in
    "") ;;
    --quick) training=(--max_steps 8) evaluation=(--limit 24) ;;
    *) echo "error: unknown arguments '$*': the only option is --quick" >&2 && exit 2 ;;
esac

step() { printf '\n== %s\n' "$*"; }

step "set-up"
bash scripts/setup.sh --base-model
export PATH="$PWD/.venv/bin:$PATH" HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
rm -rf runs/demo # the demo starts anew; other runs are left alone
mkdir -p runs/demo

step "training a judge on 300 sample ratings (configs/training/demo.yaml)"
accelerate launch --quiet --cpu --num_processes 1 --num_machines 1 --mixed_precision no --dynamo_backend no \
    --num_cpu_threads_per_process "$(nproc)" -m training.sft --config configs/training/demo.yaml "${training[@]}"

step "serving it with vLLM (configs/serving/demo.yaml), log: runs/demo/server.log"
python -m inference serve --config configs/serving/demo.yaml >runs/demo/server.log 2>&1 &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT
for ((waited = 0; ; waited += 2)); do
    if python -c 'import urllib.request as u; u.urlopen("http://127.0.0.1:8017/health", timeout=2)' 2>/dev/null; then break; fi
    if ! kill -0 $server 2>/dev/null || [ $waited -ge 400 ]; then
        tail -n 20 runs/demo/server.log >&2
        echo "error: the server did not start; its last lines are above, all of them in runs/demo/server.log" >&2
        exit 1
    fi
    sleep 2
done
grep '@' runs/demo/server.log | head -n 1

step "evaluating prompted and learned judge on the same samples (configs/eval/demo.yaml)"
python -m eval run --config configs/eval/demo.yaml "${evaluation[@]}"

step "what it found"
python scripts/demo_summary.py runs/demo/eval
