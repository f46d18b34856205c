#!/usr/bin/env bash
# One node's part of a run: worker I of N. run.sh and slurm.sh start it; by hand it is started on each machine.
#   node.sh 2 4 treerare/table1 --profile vllm       the second of four
#   node.sh - - treerare/table1 --profile vllm       as Slurm has numbered this task
# SERVE      serves a model here while the worker runs: SERVE="vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 32768"
# SERVE_URL  where that answers  [http://localhost:8000/v1: as the profile's endpoint]
# ALL        a folder that all nodes see, if TREEKIT_HOME is this node's own: the store is brought there at the end
set -euo pipefail
i=$1 n=$2
shift 2
if [ "$i" = - ]; then i=$((SLURM_PROCID + 1)) n=$SLURM_NTASKS; fi
profile=offline
for ((k = 1; k < $#; k++)); do if [ "${!k}" = --profile ]; then next=$((k + 1)) profile=${!next}; fi; done

home=${TREEKIT_HOME:-.treekit}/store
own=$profile.${i}of$n.sqlite
server=
ended() {  # however the worker ends: what it has paid for comes home, and its server stops
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    if [ -n "${ALL:-}" ] && [ -f "$home/$own" ]; then treekit store merge "$ALL/$own" "$home/$own"; fi
}
trap ended EXIT

if [ -n "${ALL:-}" ] && [ -f "$ALL/$profile.sqlite" ]; then treekit store merge "$home/$profile.sqlite" "$ALL/$profile.sqlite" --first; fi
if [ -n "${SERVE:-}" ]; then
    bash -c "exec $SERVE" &
    server=$!
    until curl -sf "${SERVE_URL:-http://localhost:8000/v1}/models" > /dev/null; do
        kill -0 "$server" 2>/dev/null || { echo "node.sh: the model's server ended: $SERVE" >&2; exit 2; }
        sleep 1
    done
fi
treekit reproduce "$@" --share "$i/$n"
