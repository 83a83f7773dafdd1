#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Two hosts, which are network namespaces, with nodes that have the same numbers in
# shared memory: each calls that of its own host through the ring, and the other
# one over TCP.
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
finish
