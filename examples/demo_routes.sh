#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_routes.sh [BUILD]
# The sixth part of ./demo: two nets, and two routers between them, of which one is
# killed under load and comes back. BUILD is where tools/ was built; the current
# directory if not given. Leaves nothing behind. If anything unexpected happens, it
# ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

# Waits for three more lines of the client, the third of which says that calls were
# answered, and prints them.
watch() {
	local from

	from=$(wc -l <live)
	wait_until "no calls are answered" answered "$from"
	tail -n +$((from + 1)) live | head -3 | sed 's/^/  /'
}

# Does the third line after the first LINES say that calls were answered?
answered() { # LINES
	tail -n +$(($1 + 3)) live | head -1 | grep -qE ' [1-9][0-9]* calls/s'
}

# Starts a router, and waits until it is ready.
router() { # NAME NETWORKS
	show lnetd --foreground --net "$2" --port "$port" --socket "$1.sock"
	rm -f "$1.log" # of the router before, which was ready, too
	lnetd --foreground --net "$2" --port "$port" --accept all \
		--socket "$1.sock" >"$1.log" 2>&1 </dev/null &
	pids[$1]=$!
	wait_until "$1 is not ready" grep -q ready: "$1.log"
	run 0 10 lnetctl --socket "$1.sock" set routing 1
}

# Prints how many messages a router has forwarded.
routed() { # ROUTER
	lnetctl --socket "$1.sock" stats show | sed -n 's/^ *route_count: //p'
}

# Has the router forwarded more than so many messages?
passes_on() { # ROUTER MESSAGES
	[ "$(routed "$1")" -gt "$2" ]
}

# Prints the configuration of a node on NET that reaches the net FAR by two gateways.
file() { # NET ADDRESS FAR GATEWAY GATEWAY
	cat <<-END
	net:
	- net type: $1
	  local NI(s):
	  - interfaces: {0: $2}
	route:
	- {net: $3, gateway: $4@$1}
	- {net: $3, gateway: $5@$1}
	END
}

free_port

say "Two routers, each with an address on the net tcp1 and one on tcp2."
router one 'tcp1(127.0.1.1),tcp2(127.0.2.1)'
router two 'tcp1(127.0.1.2),tcp2(127.0.2.2)'

say "A server on tcp2, which reaches tcp1 by either router."
file tcp2 127.0.2.9 tcp1 127.0.2.1 127.0.2.2 >server.conf
cat server.conf
show rpcserve --config server.conf --port "$port" --socket server.sock
rpcserve --config server.conf --port "$port" --accept all \
	--socket server.sock >ready 2>&1 </dev/null &
pids[server]=$!
wait_until "rpcserve is not ready" grep -q ready: ready

say "A client on tcp1. Its calls take turns at the routers."
file tcp1 127.0.1.9 tcp2 127.0.1.1 127.0.1.2 >client.conf
call=(rpcping --config client.conf --port "$port" --socket client.sock --time 1h
	--inflight 8 --verify --deadline 60 --grace 60 --live --interval 0.5
	127.0.2.9@tcp2)
show "${call[@]}"
"${call[@]}" >result 2>live </dev/null &
pids[client]=$!
wait_until "router one passes nothing on" passes_on one 1000
wait_until "router two passes nothing on" passes_on two 1000
watch
run 0 10 lnetctl --socket client.sock route show --verbose
has "gateway: 127.0.1.1@tcp1"
run 0 10 lnetctl --socket client.sock path show --nid 127.0.2.9@tcp2
has "gateway: 127.0.1.[12]@tcp1"

say "Live, what a router does, and what the client knows of both."
run 0 10 lnetctl --socket two.sock top --interval 0.5 --count 1
has '^127.0.1.2@tcp1 .* [1-9][0-9.]*[kM]?'
run 0 10 lnetctl --socket client.sock top --interval 0.5 --count 1
has '^127.0.1.1@tcp1 +tcp2 +up +1000 '

say "One router is killed, and the other one takes over."
show kill -KILL "${pids[one]}"
kill -KILL "${pids[one]}"
wait "${pids[one]}" 2>/dev/null
unset 'pids[one]'
watch

say "It comes back, and is used again."
router one 'tcp1(127.0.1.1),tcp2(127.0.2.1)'
wait_until "router one is not used again" passes_on one 1000
watch

say "No call was lost."
show kill -INT "${pids[client]}"
kill -INT "${pids[client]}"
wait "${pids[client]}" || {
	cat result
	die "rpcping: exit status $?"
}
mv result output
grep -E '^  (calls|latency)' output
has "^  calls [0-9]+, lost 0, "
for name in server one two; do
	kill "${pids[$name]}"
	wait "${pids[$name]}" || die "$name: exit status $?"
done

nothing_left "${pids[@]}"
pids=()
say "Nothing is left: no process, nobody listens on port $port."
