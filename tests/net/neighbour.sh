#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts, which are network namespaces, with nodes that have the same numbers in
# shared memory: each calls that of its own host through the ring, and the other
# one over TCP. On one host, containers use the ring if the server sees the client's
# PID; if not, it says so, and they use TCP.
. "${srcdir:-.}/tests/tools/lib.sh" || exit
own_network nsenter

# far COMMAND...: on the other host, which lives as long as a process of it
start host unshare --net bash -c 'echo ready; exec sleep 1000000' || skip "no second network can be made here"
host=${pids[host]}
unset 'pids[host]'
disown "$host"
trap 'kill -KILL "$host" 2>/dev/null; clean_up' EXIT
far=(nsenter --net="/proc/$host/ns/net")
far() {
	"${far[@]}" "$@"
}
ip link add near type veth peer name far netns "$host" &&
	ip address add 10.9.0.1/24 dev near && ip link set near up &&
	far ip address add 10.9.0.2/24 dev far && far ip link set lo up &&
	far ip link set far up || skip "no second network can be made here"

need_rpcserve near --net 'tcp(10.9.0.1),shm(7)'
start far "${far[@]}" "$rpcserve" --net 'tcp(10.9.0.2),shm(7)' || complain "no server on the other host"
client=(--explain --count 300 --deadline 60s)

run 0 "$rpcping" "${client[@]}" --net 'tcp(near),shm(8)' 10.9.0.1@tcp
has out "^  rail 8@shm to 7@shm: 300, "
run 0 "$rpcping" "${client[@]}" --net 'tcp(near),shm(8)' 10.9.0.2@tcp
has out "calls 300, lost 0, resent 0, "
has out "^  rail 10.9.0.1@tcp to 10.9.0.2@tcp: 300, "
lacks out "7@shm"
run 0 far "$rpcping" "${client[@]}" --net 'tcp(far),shm(8)' 10.9.0.2@tcp
has out "^  rail 8@shm to 7@shm: 300, "
run 0 far "$rpcping" "${client[@]}" --net 'tcp(far),shm(8)' 10.9.0.1@tcp
has out "^  rail 10.9.0.2@tcp to 10.9.0.1@tcp: 300, "
lacks out "7@shm"

# ---- containers on the network of one host ----

# in_box WHAT NAMESPACE...: a server and then a client in containers with IPC, mounts and
# these namespaces of their own. WHAT they use: the ring, or TCP. Each server has a port and
# a number of its own: that before it may end later than the unshare that has made it.
boxes=0
in_box() {
	local what=$1 box=(unshare --ipc --mount "${@:2}")
	local pid rail port shm

	"${box[@]}" true 2>/dev/null || return 0
	boxes=$((boxes + 1)) port=$((1987 + boxes)) shm=$((8 + boxes))
	start box "${box[@]}" "$rpcserve" --port $port --net "tcp(127.0.0.2),shm($shm)" || {
		complain "no server in a container: $*"
		return
	}
	# Perhaps not the server itself, which a signal to end would not reach.
	pid=${pids[box]}
	rail="8@shm to $shm@shm"
	[ "$what" = ring ] || rail="127.0.0.1@tcp to 127.0.0.2@tcp"
	for client_box in none same; do
		local in=()
		[ $client_box = none ] || in=("${box[@]}")
		run 0 "${in[@]}" "$rpcping" "${client[@]}" --port $port --net 'tcp(127.0.0.1),shm(8)' \
			127.0.0.2@tcp
		has out "calls 300, lost 0, resent 0, "
		has out "^  rail $rail: 300, "
	done
	[ "$what" = ring ] ||
		await "$dir/box.err" "its PID namespace is not seen from here"
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	unset 'pids[box]'
}

in_box ring
in_box ring --user --map-root-user
in_box TCP --pid --fork --kill-child --mount-proc
in_box TCP --user --map-root-user --pid --fork --kill-child --mount-proc
finish
