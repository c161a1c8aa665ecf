#!/bin/sh
# Runs a launcher (mpirun, srun, torchrun) and has the program save a checkpoint when its pod is told of an eviction (docs/jobs.md).
#
# usage: on-notice.sh MARKER COMMAND [ARGUMENT...]
#
# The program gets SIGUSR1 through the launcher, saves, and touches MARKER. Then, once the notice says `exit: safe`, the launcher gets SIGTERM and this
# script ends with 143; else it waits for the eviction. Without a notice it ends as the launcher does.
set -u
file=${DEVICE_HEALTH_NOTICE:-/etc/device-health/notice}
poll=${POLL:-1}
marker=$1
shift

# A field of the notice, which is one line; its own quotes inside a message are escaped, and look like no field.
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$file" 2> /dev/null; }

rm -f "$marker"
"$@" &
launcher=$!
trap 'kill -TERM "$launcher" 2> /dev/null; wait "$launcher"; exit 143' TERM
asked=
while kill -0 "$launcher" 2> /dev/null; do
  if [ "$(field action)" = evict ]; then
    if [ "$asked" != "$(field at)" ]; then
      asked=$(field at)
      rm -f "$marker"
      kill -USR1 "$launcher"
    elif [ -e "$marker" ] && [ "$(field exit)" = safe ]; then
      kill -TERM "$launcher"
      wait "$launcher"
      exit 143
    fi
  fi
  sleep "$poll" &
  wait $! # a trap runs at once
done
wait "$launcher"
