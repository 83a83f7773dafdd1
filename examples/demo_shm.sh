#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# usage: examples/demo_shm.sh [BUILD]
# A part of ./demo: processes of one host that know each other's TCP NIDs, and find
# the shared memory between them by themselves. It is taken away and given back
# under load. BUILD is where tools/ was built; the current directory if not given.
# Leaves nothing behind. If anything unexpected happens, it ends and says why.
. "$(dirname "${BASH_SOURCE[0]}")/demo_lib.sh" || exit

# Has the server got more than pings through shared memory? The counts of a net are 0
# when it is added.
ring_is_used() {
	[ "$(lnetctl --socket server.sock net show --net shm -v |
		sed -n 's/^ *recv_count: //p')" -gt 1000 ]
}

# Has the client written two more lines since there were $1?
goes_on() {
	[ "$(wc -l <live)" -gt $(($1 + 2)) ]
}

free_port
server=127.0.0.2@tcp
call=(rpcping --port "$port" --explain --deadline 60)

say "A server with a net in shared memory beside TCP."
show rpcserve --net "tcp(127.0.0.2),shm" --port "$port" --socket server.sock
rpcserve --net "tcp(127.0.0.2),shm" --port "$port" --socket server.sock \
	>ready 2>&1 </dev/null &
pids[server]=$!
wait_until "rpcserve is not ready" grep -q ready: ready

say "A client with TCP only."
show "${call[@]}" --net "tcp(127.0.0.1)" --count 5000 "$server"
"${call[@]}" --net "tcp(127.0.0.1)" --count 5000 "$server" >output || die "rpcping: $?"
grep -E '^  (calls|latency|rail)' output
has "^  rail 127.0.0.1@tcp to $server: 5000, "

say "One with shared memory, too. It calls the same NID, and its calls go through the ring."
show "${call[@]}" --net "tcp(127.0.0.1),shm" --count 5000 "$server"
"${call[@]}" --net "tcp(127.0.0.1),shm" --count 5000 "$server" >output || die "rpcping: $?"
grep -E '^  (calls|latency|rail)' output
has "^  rail [0-9]+@shm to [0-9]+@shm: 5000, "

say "The ring is taken away under load, and given back. No call is lost."
call+=(--net "tcp(127.0.0.1),shm" --time 1h --inflight 16 --verify --grace 60 --live
	--interval 0.1 "$server")
show "${call[@]}"
"${call[@]}" >result 2>live </dev/null &
pids[client]=$!
wait_until "the ring is not used" ring_is_used
run 0 5 lnetctl --socket server.sock net del --net shm
wait_until "calls do not go on" goes_on "$(wc -l <live)"
run 0 5 lnetctl --socket server.sock net add --net shm
wait_until "the ring is not used again" ring_is_used
show kill -INT "${pids[client]}"
kill -INT "${pids[client]}"
wait "${pids[client]}" || {
	cat result
	die "rpcping: exit status $?"
}
mv result output
grep -E '^  (calls|latency|rail|attempts)' output
has "^  calls [0-9]+, lost 0, "
has "^  rail 127.0.0.1@tcp to $server: [1-9]"
has "^  rail [0-9]+@shm to [0-9]+@shm: [1-9]"
kill "${pids[server]}"
wait "${pids[server]}" || die "rpcserve: exit status $?"

nothing_left "${pids[@]}"
pids=()
say "Nothing is left: no process, nobody listens on port $port."
