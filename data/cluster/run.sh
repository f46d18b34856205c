#!/usr/bin/env bash
# A run on several machines, by ssh. Each has this folder under the same path, and treekit on its PATH.
#   bash data/cluster/run.sh "gpu1 gpu2 gpu3 gpu4" treerare/table1 --profile vllm
# TREEKIT_HOME, ALL, SERVE and SERVE_URL are handed on: see node.sh. Run it again after whatever went wrong: it goes on from there.
set -euo pipefail
read -ra hosts <<< "$1"
shift
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
profile=offline
for ((k = 1; k < $#; k++)); do if [ "${!k}" = --profile ]; then next=$((k + 1)) profile=${!next}; fi; done
set_=
for name in TREEKIT_HOME ALL SERVE SERVE_URL; do if [ -n "${!name:-}" ]; then set_+="$name=$(printf %q "${!name}") "; fi; done
words=$(printf '%q ' "$@")

workers=() failed=0
for i in "${!hosts[@]}"; do
    ssh "${hosts[i]}" "cd $(printf %q "$PWD") && $set_ bash $(printf %q "$here/node.sh") $((i + 1)) ${#hosts[@]} $words" 2>&1 < /dev/null | sed -u "s/^/${hosts[i]}: /" &
    workers+=($!)
done
trap 'kill "${workers[@]}" 2>/dev/null || true' INT TERM
for w in "${workers[@]}"; do wait "$w" || failed=$((failed + 1)); done

if [ -n "${ALL:-}" ]; then treekit store merge "${TREEKIT_HOME:-.treekit}/store/$profile.sqlite" "$ALL/$profile".*of*.sqlite --first
else treekit store merge --workers --profile "$profile"; fi
if [ "$failed" -gt 0 ]; then echo "run.sh: $failed of ${#hosts[@]} workers did not end well; what they have is merged: run the same again" >&2; exit 1; fi
treekit reproduce "$@"
