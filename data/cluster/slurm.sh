#!/usr/bin/env bash
# A run on a Slurm cluster: one worker a task; the first task's node merges and makes the tables.
#   sbatch --ntasks=8 --gpus-per-task=1 data/cluster/slurm.sh treerare/table1 --profile vllm
# Submit it again when its time was too short: it goes on from there. TREEKIT_HOME, ALL, SERVE and SERVE_URL: see node.sh.
#SBATCH --job-name=treekit
#SBATCH --ntasks=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=4
#SBATCH --time=24:00:00
#SBATCH --signal=INT@120
set -uo pipefail
here=${TREEKIT_CLUSTER:-data/cluster}  # Slurm runs a copy of this file from elsewhere, in the folder where it was submitted
profile=offline
for ((k = 1; k < $#; k++)); do if [ "${!k}" = --profile ]; then next=$((k + 1)) profile=${!next}; fi; done

srun bash "$here/node.sh" - - "$@"
ended=$?
if [ -n "${ALL:-}" ]; then treekit store merge "${TREEKIT_HOME:-.treekit}/store/$profile.sqlite" "$ALL/$profile".*of*.sqlite --first
else treekit store merge --workers --profile "$profile"; fi || exit
if [ "$ended" -ne 0 ]; then echo "slurm.sh: not all workers ended well; what they have is merged: submit the same again" >&2; exit "$ended"; fi
treekit reproduce "$@"
