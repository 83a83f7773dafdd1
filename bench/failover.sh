#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# bench/run's part about failures one after the other. usage: bench/failover.sh BUILD RUNS
# BUILD is where tools/ was built. Says NAME|UNIT|AIM|MEDIAN|MIN|MAX for each row, and
# on stderr what the longest call of each run took, and how that is distributed.
#
# Two hosts, network namespaces, with two cables between them; each cable is an IP
# network, and both are one network of LNet. A client that was told one NID makes 2,000
# calls a second. Its link goes down for 3 s; a second later the server's address on the
# other cable is taken away for 2 s.
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$top/tests/net/hosts.sh" || exit
. "$top/bench/rows.sh" || exit
hosts_enter bash "$0" "$@" || exit 77
set -euo pipefail
build=$1 runs=$2
dir=$(mktemp -d)
pids=()

# Those of the hosts live as long as this program: they are not waited for.
clean_up() {
	local pid

	for pid in "${pids[@]}"; do
		kill -KILL "$pid" && wait "$pid" || true
	done 2>/dev/null
	rm -rf "$dir"
}
trap clean_up EXIT

serve() {
	local at

	at server
	mkfifo "$dir/ready"
	"${at[@]}" "$build/tools/bin/rpcserve" --config "$dir/conf" --port 988 \
		--accept all --socket "$dir/server.sock" --log err \
		>"$dir/ready" &
	pids+=($!)
	read -r _ <"$dir/ready"
}

call() {
	local at

	at client
	exec "${at[@]}" "$build/tools/bin/rpcping" --config "$dir/conf" \
		--port 988 --log err --rate 2000 --time 1h --deadline 60 \
		--grace 60 --json 10.9.0.2@tcp
}

# fail_twice: to $longest and $lost, one more value each
fail_twice() {
	local pid ms

	(call) >"$dir/out" </dev/null &
	pid=$!
	pids+=($pid)
	sleep 1
	host_link client down 1 1
	sleep 3
	host_link client up 1 1
	sleep 1
	host_address server del 0 2
	sleep 2
	host_address server add 0 2
	sleep 0.5
	kill -INT $pid
	wait $pid || true
	ms=$(awk -v us="$(value max "$dir/out")" \
		'BEGIN { printf "%.0f", us / 1000 }')
	echo "longest call: $ms ms" >&2
	longest+=("$ms")
	lost+=("$(value lost "$dir/out")")
}

# distribution MS...: of the longest calls, on stderr
distribution() {
	printf '%s\n' "$@" | sort -n | awk '
		{ ms[NR] = $1 }
		function part(p) { return ms[int((NR - 1) * p + 0.5) + 1] }
		END {
			printf "longest call of %d runs, ms: min %d, " \
			       "median %d, p95 %d, max %d\n",
			       NR, ms[1], part(0.5), part(0.95), ms[NR]
		}' >&2
}

hosts_cabled
rails_conf tcp tcp >"$dir/conf"
serve
longest=() lost=()
for ((i = 0; i < runs; i++)); do
	fail_twice
done
distribution "${longest[@]}"
what="one network: client's link, then server's address"
sum "$what: longest call" ms "at most 50" "${longest[@]}"
sum "$what: calls lost" calls 0 "${lost[@]}"
