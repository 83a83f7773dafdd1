#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_lst.sh [BUILD]
# LNet's self-test between two nodes: a part of ./demo.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

export LST_SESSION=demo XDG_RUNTIME_DIR=$dir
free_port

say "Two nodes that take part in LNet's self-test, as kernel nodes do."
for n in 1 2; do
	run 0 1 lnetd --lst 127.0.0.3@tcp --net "tcp(127.0.0.$n)" --port "$port" \
		--socket "$n.sock" --pidfile "$n.pid"
	members+=("$(cat "$n.pid")")
done

say "The console: one of them sends, the other one is sent to."
run 0 1 lst --net 'tcp(127.0.0.3)' --port "$port" new_session demo
run 0 1 lst add_group clients 127.0.0.1@tcp
run 0 1 lst add_group servers 127.0.0.2@tcp
run 0 1 lst add_batch bulk
run 0 1 lst add_test --batch bulk --concurrency 4 --from clients \
	--to servers brw write check=full size=1M

say "Each word is checked as it arrives."
run 0 1 lst run bulk
run 0 2 lst stat --delay 1 --count 1 clients servers
run 0 1 lst stop bulk
run 0 1 lst show_error clients servers
has '^0 of 2 nodes have errors'
run 0 1 lst end_session

for pid in "${members[@]}"; do
	kill "$pid"
	for ((tries = 0; tries < 300; tries++)); do
		! gone "$pid" || break
		sleep 0.1
	done
done
nothing_left "${members[@]}"
say "Nothing is left: no process, no file of the session."
