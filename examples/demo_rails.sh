#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_rails.sh [BUILD]
# The fifth part of ./demo: two rails between a client and a server, of which one is
# taken away and given back under load. BUILD is where tools/ was built; the current
# directory if not given. Leaves nothing behind. If anything unexpected happens, it
# ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

lines() {
	wc -l <"$1"
}

# lines_from N LINES PATTERN: prints the client's lines after the first N: at least
# LINES of them, and up to one that matches PATTERN. Fails if none matches.
lines_from() {
	tail -n +$(($1 + 1)) live | awk -v lines="$2" -v pattern="$3" '
		{ print "  " $0 }
		NR >= lines && $0 ~ pattern { seen = 1; exit }
		END { exit !seen }'
}

seen() {
	lines_from "$@" >shown
}

# watch LINES PATTERN: waits for the lines that the client prints next, as in
# lines_from, and prints them.
watch() {
	wait_until "no live line has $2" seen "$(lines live)" "$@"
	cat shown
}

both='rails [1-9][0-9]*% [1-9][0-9]*%'
one='rails (100% 0%|0% 100%)'

# Has the server sent more than pings over its rail tcp1? The counts of a rail are 0
# when the rail is added.
rail_is_used() {
	[ "$(lnetctl --socket server.sock net show --net tcp1 -v |
		sed -n 's/^ *send_count: //p')" -gt 1000 ]
}

free_port
server=127.0.0.2@tcp

say "A server with two rails: an address on the net tcp, and one on the net tcp1."
show rpcserve --net "tcp(127.0.0.2)" --net "tcp1(127.0.1.2)" --port "$port" \
	--socket server.sock
rpcserve --net "tcp(127.0.0.2)" --net "tcp1(127.0.1.2)" --port "$port" \
	--socket server.sock >ready 2>&1 </dev/null &
pids[server]=$!
wait_until "rpcserve is not ready" grep -q ready: ready

say "A client that knows one address of the server. It asks the server for the other
one, and uses both."
call=(rpcping --net "tcp(127.0.0.1)" --net "tcp1(127.0.1.1)" --port "$port"
	--socket client.sock --time 1h --inflight 16
	--verify --deadline 60 --grace 60 --explain --live --interval 0.5
	"$server")
show "${call[@]}"
"${call[@]}" >result 2>live </dev/null &
pids[client]=$!
wait_until "no rail tcp1" rail_is_used
watch 4 "$both"
run 0 10 lnetctl --socket client.sock peer show
has "127.0.1.2@tcp1"

say "One rail is taken away, and calls go on over the other one."
run 0 5 lnetctl --socket server.sock net del --net tcp1
watch 4 "$one"

say "It is given back, and used again."
run 0 5 lnetctl --socket server.sock net add --net tcp1 --if 127.0.1.2
wait_until "the rail is not used again" rail_is_used
watch 4 "$both"

say "No call was lost."
show kill -INT "${pids[client]}"
kill -INT "${pids[client]}"
wait "${pids[client]}" || {
	cat result
	die "rpcping: exit status $?"
}
mv result output
grep -E '^  (calls|latency|rail|attempts)' output
has "^  calls [0-9]+, lost 0, "
has "^  rail 127.0.0.1@tcp to 127.0.0.2@tcp: [1-9]"
has "^  rail 127.0.1.1@tcp1 to 127.0.1.2@tcp1: [1-9]"
kill "${pids[server]}"
wait "${pids[server]}" || die "rpcserve: exit status $?"

nothing_left "${pids[@]}"
pids=()
say "Nothing is left: no process, nobody listens on port $port."
