#!/bin/sh
# TaskProlog of slurm.conf: every task of every job is watched (docs/operate.md). Slurm sets what this prints.
ddpcheck=/opt/ddpcheck
echo "export LD_PRELOAD=$ddpcheck/lib/libddpcheck.so${LD_PRELOAD:+:$LD_PRELOAD}"
echo "export DDPCHECK_DIR=/tmp/ddpcheck-$SLURM_JOB_ID.$SLURM_STEP_ID"
